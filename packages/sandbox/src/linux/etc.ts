// The /etc of a sandbox: copies of the files that programs need and that hold no secrets, made once and kept.
//
// The real folder is not shown: it holds keys and passwords that root may read, and mounting single files would cost
// a tenth of a millisecond each for every command.

import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

const ETC = '/etc';

// Files and folders. From a folder, only world-readable files are copied.
const NAMES = [
  'alternatives',
  'bash.bashrc',
  'ca-certificates',
  'ca-certificates.conf',
  'crypto-policies',
  'debian_version',
  'default/locale',
  'environment.d',
  'fonts',
  'gai.conf',
  'group',
  'host.conf',
  'inputrc',
  'java-11-openjdk',
  'java-17-openjdk',
  'java-21-openjdk',
  'java-25-openjdk',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'locale.alias',
  'locale.conf',
  'localtime',
  'lsb-release',
  'magic',
  'magic.mime',
  'mailcap',
  'maven',
  'mime.types',
  'nsswitch.conf',
  'os-release',
  'passwd',
  'perl',
  'pki/ca-trust/extracted',
  'pki/tls/cert.pem',
  'pki/tls/certs',
  'profile',
  'protocols',
  'python3',
  'python3.11',
  'python3.12',
  'python3.13',
  'redhat-release',
  'rpc',
  'services',
  'shells',
  'ssl/openssl.cnf',
  'terminfo',
  'timezone',
  'vimrc',
  'xattr.conf',
];

// Public, and too many to copy: shown as it is.
export const CERTIFICATES = '/etc/ssl/certs';

const HOSTS = '127.0.0.1 localhost drover\n::1 localhost drover\n';
const OTHERS_MAY_READ = 0o004;

/** The folder to show as /etc, below `folder`. Made if there is none for the present state of the real one. */
export function sandboxEtcFolder(folder: string): string {
  const names = NAMES.filter((name) => existsSync(join(ETC, name)));
  const key = createHash('sha256').update(names.map(fingerprintEtcFile).join('\n')).digest('hex').slice(0, 16);
  const place = join(folder, `etc-${key}`);
  if (existsSync(place)) return place;
  const draft = `${place}.${process.pid}`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  for (const name of names) copyEtcFile(name, draft);
  mkdirSync(join(draft, 'ssl', 'certs'), { recursive: true });
  writeFileSync(join(draft, 'hosts'), HOSTS);
  writeFileSync(join(draft, 'hostname'), 'drover\n');
  settleEtcDraft(draft, place);
  return place;
}

/** Moves the draft into place, unless another process was faster. */
function settleEtcDraft(draft: string, place: string): void {
  try {
    renameSync(draft, place);
  } catch (error) {
    if (!existsSync(place)) throw error;
    rmSync(draft, { recursive: true, force: true });
  }
}

function fingerprintEtcFile(name: string): string {
  const { mtimeMs, size, ino } = lstatSync(join(ETC, name));
  return `${name} ${mtimeMs} ${size} ${ino}`;
}

function copyEtcFile(name: string, draft: string): void {
  const from = join(ETC, name);
  const to = join(draft, name);
  mkdirSync(dirname(to), { recursive: true });
  if (lstatSync(from).isSymbolicLink() && !statSync(from).isDirectory()) {
    // Copy the target, which may be invisible inside.
    writeFileSync(to, readFileSync(from));
    return;
  }
  cpSync(from, to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true, filter: isEtcFileForOthers });
}

function isEtcFileForOthers(path: string): boolean {
  const found = lstatSync(path);
  return found.isSymbolicLink() || ((found.isFile() || found.isDirectory()) && (found.mode & OTHERS_MAY_READ) !== 0);
}
