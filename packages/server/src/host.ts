// Host: the functions that the server needs from its starter. The server answers requests and keeps sessions and
// runs apart. The host chooses models and permissions, and executes runs.

import type { Diagnose } from '@drover/core/diagnosis';
import type { NewRun, NewSession, RemoteTool, ServerInfo } from '@drover/client/wire';
import type { Session } from '@drover/core/session/session';
import type { RunControl } from '@drover/coordinator/control/run-control';
import type { Bus } from '@drover/core/bus';
import type { PlanAnswer as ApprovedPlan } from '@drover/coordinator/plan/approval';
import type { Delivered, Delivery } from '@drover/protocol/run';
import type { Message } from '@drover/protocol/messages';
import type { UserAnswer, Questions } from '@drover/core/permission/questions';

export type Host = {
  readonly home: string; // DROVER_HOME: where journals are
  readonly root: string; // the folder that is served: sessions and runs work inside of it
  readonly version: string;
  /** The default model, and the models that can be asked with the present settings. */
  readonly models: () => Promise<Pick<ServerInfo, 'model' | 'models'>>;
  /**
   * Opens a session at its journal, new or kept, and holds the journal's lock until it is closed. Throws
   * UsageError for a model that can't be used, DroverError for a journal that can't be written.
   */
  readonly openSession: (wanted: SessionWanted) => Promise<HostedSession>;
  /** Starts a run in this process. The run is durable when this resolves. Throws UsageError if it cannot start. */
  readonly startRun: (wanted: RunWanted) => Promise<HostedRun>;
  /** Resumes a run in this process. Throws UsageError if there is nothing to resume or to retry. */
  readonly resumeRun: (wanted: RunAgain) => Promise<HostedRun>;
  /** Delivers what has landed. Throws UsageError if something is in the way; then nothing is changed. */
  readonly deliverRun: (id: string, deliver: Delivery) => Promise<Delivered>;
  /** Returns everything that has landed as a patch; undefined if it is gone. */
  readonly diffOf: (id: string) => Promise<string | undefined>;
  /** Returns the patch of a commit of a run; undefined if the commit is gone. */
  readonly patchOf: (landed: LandedCommit, signal: AbortSignal) => Promise<string | undefined>;
  readonly diagnose: Diagnose;
};

/** `begin` is for a new session. An existing one is as its journal says, except for another `model`. */
export type SessionWanted = { readonly id: string; readonly begin?: SessionBeginning; readonly model?: string };

/** Already checked: the folder exists inside the served folder. */
type SessionBeginning = Pick<NewSession, 'model' | 'remoteTimeoutMs' | 'options'> & {
  readonly messages: readonly Message[];
  readonly cwd: string;
  readonly tools: readonly RemoteTool[];
};

export type HostedSession = {
  readonly session: Session;
  readonly questions: Pick<Questions, 'answer' | 'leaveOpen' | 'waiting'>;
  /** Closes the journal and the provider. The bus sends no events afterwards. */
  readonly close: () => Promise<void>;
};

export type RunWanted = NewRun & { readonly cwd: string };

/**
 * `retry`: these tasks, or all that failed if there are none; without it, the run is resumed. Without `approve`, plans
 * wait for an answer if they did before.
 */
export type RunAgain = { readonly id: string; readonly approve?: boolean; readonly retry?: readonly string[] };

export type HostedRun = {
  readonly id: string;
  readonly bus: Pick<Bus, 'reader' | 'told'>; // closed when the run has ended
  /** The number of questions and plans that wait for an answer. */
  readonly waiting: () => number;
  /** Returns false if no such question waits. */
  readonly answer: (requestId: string, answer: UserAnswer) => boolean;
  /** Returns false if no plan waits. */
  readonly answerPlan: (answer: ApprovedPlan | undefined) => boolean;
  readonly cancel: () => void;
  /** Messages to workers, cancel and retry of single tasks, pause. */
  readonly control: Pick<RunControl, 'message' | 'cancel' | 'retry' | 'pause'>;
  /** Never rejects. */
  readonly ended: Promise<void>;
};

export type LandedCommit = { readonly repository: string; readonly commit: string };
