// What the server has others do. It answers requests and keeps sessions and runs apart; which model there
// is, what an agent may do and how a run is carried out is for whoever starts the server to say.

import type { Diagnose } from '@drover/core/diagnosis';
import type { NewRun, NewSession, RemoteTool } from '@drover/client/wire';
import type { Session } from '@drover/core/session/session';
import type { Bus } from '@drover/core/bus';
import type { Message } from '@drover/protocol/messages';
import type { Answer, Questions } from '@drover/core/permission/questions';

export type Host = {
  readonly home: string; // DROVER_HOME: where journals are
  readonly root: string; // the folder that is served: sessions and runs work inside of it
  readonly version: string;
  /**
   * Opens a session at its journal, new or kept, and holds the journal's lock until it is closed. Throws
   * UsageError for a model that can't be used, DroverError for a journal that can't be written.
   */
  readonly openSession: (wanted: SessionWanted) => Promise<HostedSession>;
  /** Starts a run in this process; throws UsageError for what can't be started. It is on the disk when this resolves. */
  readonly startRun: (wanted: RunWanted) => Promise<HostedRun>;
  /** What a commit of a run changed; undefined where it is gone. */
  readonly patchOf: (landed: LandedCommit, signal: AbortSignal) => Promise<string | undefined>;
  readonly diagnose: Diagnose;
};

/** `begin` for a session that is new. A kept one is as its journal says, but for another `model`. */
export type SessionWanted = { readonly id: string; readonly begin?: SessionBeginning; readonly model?: string };

/** Checked: the folder is there and inside of what is served. */
type SessionBeginning = Pick<NewSession, 'model' | 'remoteTimeoutMs' | 'options'> & {
  readonly messages: readonly Message[];
  readonly cwd: string;
  readonly tools: readonly RemoteTool[];
};

export type HostedSession = {
  readonly session: Session;
  readonly questions: Pick<Questions, 'answer' | 'leaveOpen'>;
  /** The journal and the provider; afterwards its bus tells nothing more. */
  readonly close: () => Promise<void>;
};

export type RunWanted = NewRun & { readonly cwd: string };

export type HostedRun = {
  readonly id: string;
  readonly bus: Pick<Bus, 'reader' | 'told'>; // closed when the run has ended
  /** False where no such question waits. */
  readonly answer: (requestId: string, answer: Answer) => boolean;
  readonly cancel: () => void;
  /** Never rejects. */
  readonly ended: Promise<void>;
};

export type LandedCommit = { readonly repository: string; readonly commit: string };
