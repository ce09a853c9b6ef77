// Boxes: sandboxes for one command each. A box can be started ahead of its command.
//
// Guarantees
//   1. A box runs one command. It ends with that command and every process the command started.
//   2. A waiting box is used only if a new one would be the same: same process, same files behind its mounts.
//      Otherwise it is discarded and a new one is started.
//   3. Boxes wait only between `keepProcessBoxes` and its disposal, which is one turn; at most one per private folder.
//
// Failure: if a box can't be started ahead, the command starts its own and reports the problem.

import { confineScript } from '@drover/sandbox/sandbox';
import { mountIdentityInBubblewrap } from '@drover/sandbox/linux/bubblewrap';
import type { ConfinedProcess, SandboxPolicy } from '@drover/sandbox/policy';
import { newId } from '../../ids.ts';
import { killChildProcess, type StartedChild, startChildProcess } from './child.ts';
import { bestEffort } from '../../promises.ts';

export type BoxPlace = {
  readonly sandbox: SandboxPolicy;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Marks the processes of a box that was not started ahead. */
  readonly callId: string;
};

export type Box = {
  readonly child: StartedChild;
  /** Starts the command. */
  readonly begin: (script: string) => void;
  /** Ends a box whose command was not started. */
  readonly discard: () => void;
};

type WaitingBox = Box & {
  readonly likeness: string;
  readonly isOver: () => boolean;
};

/** A box that waits or is starting. Resolves to undefined if it could not be started. */
type BoxAhead = Promise<WaitingBox | undefined>;

// By private folder of the policy. Undefined: a box may wait, but none does.
const places = new Map<string, BoxAhead | undefined>();

/** Lets boxes wait for commands of this policy until the result is disposed. */
export function keepProcessBoxes(sandbox: SandboxPolicy | undefined): Disposable {
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

/** Returns the waiting box, or a new one. Throws ToolError if it can't be started. */
export async function openProcessBox(place: BoxPlace): Promise<Box> {
  const { folder } = place.sandbox;
  const ahead = places.get(folder);
  if (ahead === undefined) return startProcessBox(place);
  places.set(folder, undefined);
  const box = await ahead;
  if (
    box !== undefined &&
    !box.isOver() &&
    box.likeness === likenessOfProcessBox(confineScript(place.sandbox, place.env), place)
  )
    return box;
  box?.discard();
  return startProcessBox(place);
}

/** Starts the next box if boxes may wait for this policy and none does. */
export function startProcessBoxAhead(place: Omit<BoxPlace, 'callId'>): void {
  const { folder } = place.sandbox;
  if (!places.has(folder) || places.get(folder) !== undefined) return;
  // If this fails, the next command starts its own box.
  const ahead = bestEffort(startProcessBox({ ...place, callId: newId('call') }));
  places.set(folder, ahead);
}

async function startProcessBox(place: BoxPlace): Promise<WaitingBox> {
  const confined = confineScript(place.sandbox, place.env);
  const { file, args, env, files, report } = confined;
  const likeness = likenessOfProcessBox(confined, place);
  const script = Promise.withResolvers<string>();
  const spec = { file, args, env, files, report, cwd: place.cwd, callId: place.callId, contains: true };
  const child = await startChildProcess({ ...spec, input: script.promise }, true);
  let over = false;
  const end = () => void (over = true);
  child.process.ended.then(end, end);
  const begin = script.resolve;
  const discard = () => {
    killChildProcess(child);
    begin('');
  };
  return { child, begin, discard, likeness, isOver: () => over };
}

function likenessOfProcessBox({ file, args, env }: ConfinedProcess, { cwd, sandbox }: BoxPlace): string {
  return JSON.stringify([file, args, env, cwd, mountIdentityInBubblewrap(sandbox)]);
}
