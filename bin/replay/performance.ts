// Replays a recorded session: the real loop asks a scripted model over loopback, and its tools do nothing. Nothing is
// stored, and no key or network is needed.

import { dirname } from 'node:path';
import { Session } from '@drover/core/session/session';
import { DroverError } from '@drover/core/errors';
import type { Failure } from '@drover/protocol/failures';
import { newId } from '@drover/core/ids';
import { defaultTimeouts, modelFactsOf, parseModelLabel, wireApis } from '@drover/core/model/catalog';
import type { Message } from '@drover/protocol/messages';
import { defaultRetry } from '@drover/core/model/retry';
import type { TurnOutcome } from '@drover/protocol/outcomes';
import { startRehearsal } from '@drover/rehearsal/server';
import type { View } from '../views/view.ts';
import { replayedAnswer } from './answers.ts';
import type { Recording } from './recording.ts';

import { replayToolStandIns } from './stand-ins.ts';

// Longer than any wait: such an answer is requested only to be cancelled.
const NEVER_MS = 2 ** 31 - 1;

/** A folder for long outputs that cannot exist, because it is below a file. */
export const NO_FILE = '/dev/null/nothing/output';

export type Performance = {
  readonly recording: Recording;
  readonly model: string;
  readonly cwd: string;
  readonly view: View;
};

/** The result of this replay. */
export type Performed = { readonly messages: readonly Message[]; readonly endings: readonly TurnOutcome['status'][] };

export async function replaySession(performance: Performance, signal: AbortSignal): Promise<Performed> {
  const { recording, view } = performance;
  let left = recording.turns[0]?.answers ?? [];
  // If a turn was not done, the events after its last answer ended it.
  let endTurn = (): void => undefined;
  let gateFailure: Failure | undefined;

  await using opened = new AsyncDisposableStack();
  const next = () => {
    const [answer, ...rest] = left;
    left = rest;
    for (const { content } of answer?.steering ?? []) session.steer(content);
    if (answer !== undefined) return replayedAnswer(answer.message);
    endTurn();
    return { text: 'late', delayMs: NEVER_MS };
  };
  const server = opened.adopt(await startRehearsal({ answers: [next] }), ({ close }) => close());
  const session = await openReplayedSession(performance, server.baseUrlFor('anthropic'), {
    onUnknown: () => endTurn(),
    gateFailure: () => gateFailure,
  });

  const messages: Message[] = [];
  const endings: TurnOutcome['status'][] = [];
  for (const { asked, answers, failure } of recording.turns) {
    left = answers;
    gateFailure = failure?.kind === 'gate.failed' ? failure : undefined;
    const ended = new AbortController();
    endTurn = () => ended.abort(new DroverError(failure ?? NOT_RECORDED));
    const execution = session.execute({ content: asked.content }, AbortSignal.any([signal, ended.signal]));
    for await (const event of execution) await view.show(event);
    const result = await execution.result();
    messages.push(...result.messages);
    endings.push(result.outcome.status);
    if (signal.aborted) break;
  }
  await view.close();
  return { messages, endings };
}

const NOT_RECORDED: Failure = { kind: 'provider.garbled', message: 'the journal holds no further answer' };

type Heard = {
  readonly onUnknown: () => void;
  /** Gates are not run again: the recorded verdict is used. */
  readonly gateFailure: () => Failure | undefined;
};

async function openReplayedSession(
  { recording, model: label, cwd }: Performance,
  baseUrl: string,
  { onUnknown, gateFailure }: Heard,
): Promise<Session> {
  const { provider: id, name: model } = parseModelLabel(label);
  const provider = await wireApis.anthropic({ id, apiKey: 'none', baseUrl, timeouts: defaultTimeouts });
  const { tools, hear } = replayToolStandIns(
    recording.turns.flatMap(({ answers }) => answers),
    onUnknown,
  );
  return new Session({
    id: newId('ses'),
    worker: 0,
    provider,
    model,
    // Compacted text stays compacted, and discarded answers are not in the journal's messages.
    contextTokens: Number.MAX_SAFE_INTEGER,
    outputTokensMax: modelFactsOf(model).outputTokensMax,
    tools,
    context: { cwd, env: {}, outputFolder: dirname(NO_FILE) },
    limits: { stepsMax: Number.MAX_SAFE_INTEGER, textCallRetriesMax: 0 },
    retry: defaultRetry,
    judge: async () => ({ effect: 'allow', why: 'nothing is run' }),
    check: async () => gateFailure(),
    question: async () => ({ allowed: true, by: 'nobody', always: false }),
    pass: (event) => {
      hear(event);
      return [event];
    },
  });
}
