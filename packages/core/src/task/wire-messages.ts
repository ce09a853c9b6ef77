// The messages of the task wire, one line each: from a task in its thread to its run, and back.

import type { Question } from '../agent/calls/calls.ts';
import type { Decision, Event, Place } from '@drover/protocol/events';
import type { Failure } from '@drover/protocol/failures';
import type { ServedCall } from '../tools/served/served.ts';
import type { ToolOutput } from '../tools/tool.ts';
import type { AskOrder, AskResult } from './asking.ts';
import type { TaskMessage } from './link.ts';

export type Step = Pick<Place, 'turn' | 'step'>;

export type Request =
  | { readonly type: 'settled' }
  | { readonly type: 'ask'; readonly order: AskOrder }
  | { readonly type: 'question'; readonly question: Question }
  | { readonly type: 'served'; readonly call: ServedCall };

export type FromTask =
  | { readonly type: 'begin'; readonly thread: number }
  | { readonly type: 'fell' } // code of this task ends the thread
  | { readonly type: 'event'; readonly event: Event; readonly step: Step }
  | { readonly type: 'request'; readonly id: number; readonly request: Request }
  | { readonly type: 'withdraw'; readonly id: number; readonly failure: Failure }
  | { readonly type: 'delivered'; readonly id: string }; // a message of the user

export type Reply =
  | { readonly type: 'stored' }
  | { readonly type: 'answered'; readonly result: AskResult }
  | { readonly type: 'decision'; readonly decision: Decision }
  | { readonly type: 'output'; readonly output: ToolOutput } // of a served tool
  | { readonly type: 'failed'; readonly failure: Failure };

/** News of an answer that is under way: a tool name, or which of the notes it is. */
export type News = { readonly calling: string } | 'admitted' | 'progress';

export type FromRun =
  | { readonly type: 'news'; readonly id: number; readonly news: News }
  | { readonly type: 'delta'; readonly id: number; readonly delta: string } // output of a served tool while it runs
  | { readonly type: 'reply'; readonly id: number; readonly reply: Reply }
  | { readonly type: 'message'; readonly message: TaskMessage } // of the user
  | { readonly type: 'stop'; readonly failure: Failure };
