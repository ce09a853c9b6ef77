// A plan as data: its tasks, and the part of the conversation that each worker starts with.

/** A `read` task changes nothing and needs no merge. */
export type TaskMode = 'write' | 'read';

export type PlannedTask = {
  readonly id: string;
  readonly title: string;
  readonly prompt: string;
  readonly dependsOn: readonly string[];
  readonly files: readonly string[]; // paths or globs it means to change; empty where it doesn't say
  readonly mode: TaskMode;
  /** Commands that must pass in its workspace before its work may land; absent where only the merged tree is tested. */
  readonly gates?: readonly string[];
};

/** How much of the coordinator's conversation a worker starts with. */
export type Seeding = 'full' | 'brief' | 'none';

export type SeedSummary = {
  readonly seeding: Seeding;
  readonly messages: number;
  readonly tokens: number; // estimated
  readonly digest: string; // of system prompt, tools and messages: the same for all that share them
};
