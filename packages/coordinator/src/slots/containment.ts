// The terms between a workspace and its sandbox: the facts that the sandbox is made from, and the result.

import type { BroughtFolder, SandboxPolicy } from '@drover/sandbox/policy';

type WorkspaceView = {
  readonly root: string;
  /** For private files of its commands. */
  readonly folder: string;
  /** Object folders of git, and what links of the workspace lead to. */
  readonly readable: readonly string[];
  /** Dependencies of the checkout, shown read-only in the workspace. */
  readonly brought: readonly BroughtFolder[];
  readonly worker: number;
  readonly task: string;
  readonly attempt: number;
};

export type Contained = {
  readonly policy: SandboxPolicy;
  /** Ends what serves the sandbox from outside. */
  readonly close: () => Promise<void>;
};

/** Absent where commands run in the open. */
export type Contain = (view: WorkspaceView) => Promise<Contained>;
