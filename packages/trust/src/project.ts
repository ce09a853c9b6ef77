// The files of a project that can make drover do something, and which of them the user has approved.
//
// Guarantees
//   1. A file counts only if exactly its bytes are approved at its place, or if the user trusts the whole project for
//      this command. Everything else is listed and ignored.
//   2. The content that is handed out is the content whose digest was checked.

import { readTrustApprovals, type Approval, type ProjectEntry } from './approvals.ts';
import { findTrustFiles, type FoundFile, type ProjectKind } from './inventory.ts';
import { projectPlaceForTrust, type ProjectPlace } from './place.ts';
import type { FolderFile, ReadEntry } from './project-file.ts';

export type ProjectFile = FoundFile & { readonly approval: Approval };

/** A file that counts, or the main file of a folder with the list of its files. */
export type TrustedFile = Pick<FoundFile, 'kind' | 'name' | 'path'> & {
  readonly text: string;
  readonly sha256: string;
  readonly files?: readonly FolderFile[];
};

export type ProjectSearch = {
  /** The folder in use. */
  readonly cwd: string;
  /** Where drover keeps its state, with the approvals. */
  readonly home: string;
  /** Folders that are the user's own and no project's: drover's state, and those of agents in HOME. */
  readonly own: readonly string[];
  /** Every file counts, approved or not. */
  readonly trustsAll: boolean;
};

export class Project {
  readonly repository: string;
  readonly files: readonly ProjectFile[];
  readonly trustsAll: boolean;

  private constructor({ repository }: ProjectPlace, files: readonly ProjectFile[], trustsAll: boolean) {
    this.repository = repository;
    this.files = files;
    this.trustsAll = trustsAll;
  }

  static async find({ cwd, home, own, trustsAll }: ProjectSearch): Promise<Project> {
    const place = await projectPlaceForTrust(cwd);
    const [found, approvalFor] = await Promise.all([findTrustFiles(place, own), readTrustApprovals(home)]);
    const files = found.map((file): ProjectFile => {
      const entry = trustEntryOf(place.repository, file);
      return { ...file, approval: entry === undefined ? 'none' : approvalFor(entry) };
    });
    return new Project(place, files, trustsAll);
  }

  /** The files of a kind that count. The nearest folder comes first. */
  trusted(kind: ProjectKind): readonly TrustedFile[] {
    return this.files.flatMap((file) => {
      const { name, path, read, approval } = file;
      if (file.kind !== kind || 'problem' in read || !(this.trustsAll || approval === 'approved')) return [];
      return [{ kind, name, path, ...read }];
    });
  }

  /** The files that do not count, because they are not approved or cannot be read. */
  get ignored(): readonly ProjectFile[] {
    return this.files.filter(({ read, approval }) => 'problem' in read || !(this.trustsAll || approval === 'approved'));
  }

  /** The files that count without an approval of their own. */
  get unapproved(): readonly ProjectFile[] {
    return this.files.filter(({ read, approval }) => this.trustsAll && !('problem' in read) && approval !== 'approved');
  }

  entry(file: FoundFile & { readonly read: ReadEntry }): ProjectEntry {
    return { repository: this.repository, file: file.name, sha256: file.read.sha256 };
  }
}

function trustEntryOf(repository: string, { name, read }: FoundFile): ProjectEntry | undefined {
  return 'problem' in read ? undefined : { repository, file: name, sha256: read.sha256 };
}
