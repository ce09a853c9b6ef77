// Boxes: sandboxes for one command each. One can be started ahead, so that the next command finds it waiting.
//
// Guarantees
//   1. A box runs one command. Then it is gone, with all that the command started.
//   2. A box that waited is used only if it is what a new one would be: the same process, and the same files behind its
//      mounts. Otherwise it is ended, and a new one is started.
//   3. Boxes wait only between `keepBoxes` and its disposal, which is a turn; at most one for each private folder.
//
// Failure: a box that can't be started ahead is left out. The command starts its own, and reports what is wrong.

import { confine } from '@drover/sandbox/sandbox';
import { mountIdentity } from '@drover/sandbox/linux/bubblewrap';
import type { ConfinedProcess, SandboxPolicy } from '@drover/sandbox/policy';
import { newId } from '../../ids.ts';
import { killChild, type StartedChild, startChild } from './child.ts';

export type BoxPlace = {
  readonly sandbox: SandboxPolicy;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Marks the processes of a box that did not wait. */
  readonly callId: string;
};

export type Box = {
  readonly child: StartedChild;
  /** Begins the command. */
  readonly begin: (script: string) => void;
  /** Ends a box whose command has not begun. */
  readonly discard: () => void;
};

type WaitingBox = Box & {
  readonly likeness: string;
  readonly isOver: () => boolean;
};

/** One that waits or is being started. It resolves to undefined where it could not be started. */
type BoxAhead = Promise<WaitingBox | undefined>;

// By the private folder of the policy. Undefined: a box may wait there, and none does.
const places = new Map<string, BoxAhead | undefined>();

/** Until it is disposed of, boxes may wait for commands of this policy. */
export function keepBoxes(sandbox: SandboxPolicy | undefined): Disposable {
  if (sandbox === undefined) return { [Symbol.dispose]: () => undefined };
  const { folder } = sandbox;
  if (!places.has(folder)) places.set(folder, undefined);
  return {
    [Symbol.dispose]() {
      const ahead = places.get(folder);
      places.delete(folder);
      void ahead?.then((box) => box?.discard());
    },
  };
}

/** The box that waits, or a new one. Throws ToolError where it can't be started. */
export async function openBox(place: BoxPlace): Promise<Box> {
  const { folder } = place.sandbox;
  const ahead = places.get(folder);
  if (ahead === undefined) return start(place);
  places.set(folder, undefined);
  const box = await ahead;
  if (box !== undefined && !box.isOver() && box.likeness === likenessOf(confine(place.sandbox, place.env), place))
    return box;
  box?.discard();
  return start(place);
}

/** Starts the next box, where boxes are kept for this policy and none waits. */
export function startAhead(place: Omit<BoxPlace, 'callId'>): void {
  const { folder } = place.sandbox;
  if (!places.has(folder) || places.get(folder) !== undefined) return;
  // The next command starts its own where this one can't be started.
  const ahead = start({ ...place, callId: newId('call') }).catch(() => undefined);
  places.set(folder, ahead);
}

async function start(place: BoxPlace): Promise<WaitingBox> {
  const confined = confine(place.sandbox, place.env);
  const { file, args, env, files, report } = confined;
  const likeness = likenessOf(confined, place);
  const script = Promise.withResolvers<string>();
  const spec = { file, args, env, files, report, cwd: place.cwd, callId: place.callId, contains: true };
  const child = await startChild({ ...spec, input: script.promise }, true);
  let over = false;
  const end = () => void (over = true);
  child.process.ended.then(end, end);
  const begin = script.resolve;
  const discard = () => {
    killChild(child);
    begin('');
  };
  return { child, begin, discard, likeness, isOver: () => over };
}

function likenessOf({ file, args, env }: ConfinedProcess, { cwd, sandbox }: BoxPlace): string {
  return JSON.stringify([file, args, env, cwd, mountIdentity(sandbox)]);
}
