// Everyday commands of developers, by the programs they need, and those that behave differently in the sandbox.

import { FILES, TEXT } from './files.ts';
import { SHELL } from './shell.ts';
import { BUILD, GIT, JAVA, NODE, PYTHON, RUST } from './tools.ts';

export type Everyday = { readonly command: string; readonly needs: string };

const needing = (needs: string, commands: readonly string[]): readonly Everyday[] =>
  commands.map((command) => ({ command, needs }));

export const EVERYDAY: readonly Everyday[] = [
  ...needing('bash', [...FILES, ...TEXT, ...SHELL]),
  ...needing('git', GIT),
  ...needing('npm', NODE),
  ...needing('python3', PYTHON),
  ...needing('gcc', BUILD),
  ...needing('javac', JAVA),
  ...needing('cargo', RUST),
];

export type Different = { readonly command: string; readonly why: string; readonly inside: RegExp };

/** Commands that behave differently inside, on purpose. */
export const DIFFERENT: readonly Different[] = [
  { command: 'hostname', why: 'the sandbox has a name of its own', inside: /^drover\n$/ },
  { command: 'cat /etc/hostname', why: 'the sandbox has a name of its own', inside: /^drover\n$/ },
  { command: 'ps -e | wc -l', why: 'only processes of the command are seen', inside: /^[3-7]\n$/ },
  { command: 'echo $PPID', why: 'the process that started the sandbox is not seen', inside: /^1\n$/ },
  { command: 'cat /etc/shadow', why: 'it holds passwords', inside: /No such file/ },
  { command: 'ls /sys', why: 'devices and kernel settings are not shown', inside: /No such file/ },
  {
    command: 'ls /mnt /srv /boot',
    why: 'other folders of the machine are not shown',
    inside: /^(ls: .*No such file.*\n){3}$/,
  },
  { command: 'touch /usr/local/x', why: 'system folders are read-only', inside: /Read-only file system/ },
  { command: 'ls ~/.bashrc ~/.ssh', why: 'HOME is private and begins empty', inside: /^(ls: .*No such file.*\n){2}$/ },
  { command: 'df --output=target | grep -c ^/', why: 'mounts are those of the sandbox', inside: /^\d+\n$/ },
  {
    command: 'ip addr 2>/dev/null | grep -c inet || ls /sys/class/net',
    why: 'there is no network but loopback',
    inside: /^[012]\n|No such file/,
  },
  {
    command: 'getent hosts example.com || echo unknown',
    why: 'names are resolved by the proxy only',
    inside: /^unknown\n$/,
  },
  { command: 'curl -sS --max-time 5 http://192.0.2.1/ 2>&1', why: 'there is no network', inside: /curl: \(\d+\)/ },
  { command: 'su nobody -s /bin/sh -c true; sudo -n true', why: 'no program gains rights', inside: /./ },
  { command: 'chown 1234 README.md', why: 'there are no other users', inside: /Invalid argument|not permitted/ },
  { command: 'mount | grep -c "on /usr "', why: 'mounts are those of the sandbox', inside: /^1\n$/ },
  { command: 'ulimit -c', why: 'core files are off', inside: /^0\n$/ },
  {
    command: 'strace -f true 2>&1 | tail -1',
    why: 'tracing is refused',
    inside: /not permitted|not found|detached|EXIT/i,
  },
  { command: 'unshare -r true', why: 'namespaces are refused', inside: /not permitted|unshare/ },
  { command: 'dmesg', why: 'the kernel log is not shown', inside: /not permitted|denied/ },
  { command: 'echo 0 > /proc/self/oom_score_adj', why: '/proc is read-only', inside: /Read-only file system/ },
  { command: 'crontab -l; systemctl status 2>&1', why: 'services of the machine are not reached', inside: /./ },
  { command: 'docker ps', why: 'sockets of the machine are not reached', inside: /./ },
];
