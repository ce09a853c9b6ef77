// A plan as data: its tasks, and how much of the conversation each worker starts with.

/** A `read` task changes no files and needs no merge. */
export type TaskMode = 'write' | 'read';

export type PlannedTask = {
  readonly id: string;
  readonly title: string;
  readonly prompt: string;
  readonly dependsOn: readonly string[];
  readonly files: readonly string[]; // paths or globs that the task plans to change; empty if unknown
  readonly mode: TaskMode;
  /** Commands that must pass in the task's workspace before it lands. If absent, only the merged tree is tested. */
  readonly gates?: readonly string[];
  /** Labels that a host must have to work on it. */
  readonly runsOn?: readonly string[];
  /** The model of its worker, as provider/name. If absent, the models of the role `work`. */
  readonly model?: string;
  /** The custom agent that does it, by name. */
  readonly agent?: string;
};

/** A custom agent: a worker with a prompt of its own, and perhaps fewer tools or another model. */
export type Agent = {
  readonly name: string;
  readonly description: string;
  readonly prompt: string;
  /** The tools that it may use (default: all of a worker). */
  readonly tools?: readonly string[];
  readonly model?: string; // provider/name
};

/** How much of the coordinator's conversation a worker starts with. */
export type Seeding = 'full' | 'brief' | 'none';

export type SeedSummary = {
  readonly seeding: Seeding;
  readonly messages: number;
  readonly tokens: number; // estimated
  readonly digest: string; // of system prompt, tools and messages; equal for workers that share all three
};
