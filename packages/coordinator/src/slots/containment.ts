// The types between a workspace and its sandbox: the facts from which the sandbox is made, and the result.

import type { BroughtFolder, SandboxPolicy } from '@drover/sandbox/policy';

type WorkspaceView = {
  readonly root: string;
  /** Folder for private files of its commands. */
  readonly folder: string;
  /** Git object folders, and targets of links in the workspace. */
  readonly readable: readonly string[];
  /** Dependencies of the checkout, shown read-only in the workspace. */
  readonly brought: readonly BroughtFolder[];
  readonly worker: number;
  readonly task: string;
  readonly attempt: number;
};

export type Contained = {
  readonly policy: SandboxPolicy;
  /** Ends the processes that serve the sandbox from outside. */
  readonly close: () => Promise<void>;
};

/** Absent if commands run without a sandbox. */
export type Contain = (view: WorkspaceView) => Promise<Contained>;
