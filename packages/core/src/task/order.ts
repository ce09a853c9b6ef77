// Orders to a thread, and its signs of life: what passes between a pool and its threads beside the wires of tasks.

import type { MessagePort } from 'node:worker_threads';
import type { LauncherAddress } from '../tools/process/launcher.ts';
import type { TaskSpec } from './task.ts';

/** The work of a thread: a task, or a warm-up. */
export type Order = { readonly launcher?: LauncherAddress } & (
  | ({ readonly spec: TaskSpec } & Opening)
  /** Warm-up: loads the modules that a task needs first. */
  | { readonly warm: true }
);

/** Sent by a thread every second while it has tasks; not over a wire, since it is for all of them. */
export type SignOfLife = { readonly sign: number }; // the thread's id

/** The data with which the thread opens its end of the wire. */
export type Opening = { readonly port: MessagePort };
