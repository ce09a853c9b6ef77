// Asks the user at the terminal to approve a plan before any of it runs. The user may edit it or comment on it.
//
// Without a terminal, or with --yes, the plan runs as it is. A terminal that cannot show the plan screen gets lines.

import type { ApprovePlan, PlanAnswer, PlanProposal } from '@drover/coordinator/plan/approval';
import type { PlannedTask } from '@drover/protocol/plan';
import type { RunSettings } from '@drover/protocol/run';
import type { PlanRules } from '../../files/plan-file.ts';
import type { Person } from '../../terminal/person.ts';
import { printError, type Io, print } from '../../io.ts';
import { textStyle } from '../../views/text/style.ts';
import { terminalColumns, textOnOneLine } from '../../views/text/terminal-text.ts';
import { type Edit, editPlanInEditor } from './edit-plan.ts';
import { type Estimate, estimatePlan } from './estimate.ts';
import { planTotals } from './plan-frame.ts';
import { planAnswerOfKey, askPlan, canShowPlan, type PlanKey } from './plan-screen.ts';

export type ApprovalWishes = Pick<PlanRules, 'modelOf' | 'agents'> & {
  readonly yes: boolean;
  readonly settings: RunSettings;
  readonly home: string;
};
type Before = { readonly person: Person | undefined; readonly io: Io };

const KEPT_NOTE = 'Your edit is kept: [e]dit opens it again, [y]es takes the plan above.';
const COMMENT_WORDS = '  What should change? Enter alone goes back: ';

/** Undefined if plans run as they are. */
export function openPlanApproval(wishes: ApprovalWishes, { person, io }: Before): ApprovePlan | undefined {
  if (wishes.yes || person === undefined) return undefined;
  return (proposal, signal) => new Approval(wishes, { person, io }).ask(proposal, signal);
}

class Approval {
  readonly #wishes: ApprovalWishes;
  readonly #person: Person;
  readonly #io: Io;

  constructor(wishes: ApprovalWishes, { person, io }: { readonly person: Person; readonly io: Io }) {
    this.#wishes = wishes;
    this.#person = person;
    this.#io = io;
  }

  async ask(proposal: PlanProposal, signal: AbortSignal): Promise<PlanAnswer | undefined> {
    const { settings, home, modelOf, agents } = this.#wishes;
    let { tasks } = proposal;
    let edit: Edit = {};
    for (;;) {
      const estimate = await estimatePlan(tasks, settings, home);
      const key = await this.#choose({ ...proposal, tasks }, { estimate, edit }, signal);
      const answer = planAnswerOfKey(key, tasks);
      if (answer !== undefined) return answer === 'declined' ? undefined : answer;
      if (key === 'comment') {
        const comment = (await this.#person.line(COMMENT_WORDS, signal))?.trim() ?? '';
        if (comment !== '') return { comment };
        continue;
      }
      edit = await editPlanInEditor(
        { tasks, ...edit, rules: { tasksMax: settings.tasksMax, modelOf, agents } },
        this.#io,
      );
      if (edit.problem !== undefined) await printError(this.#io, edit.problem);
      tasks = edit.tasks ?? tasks;
    }
  }

  async #choose(
    proposal: PlanProposal,
    { estimate, edit }: { readonly estimate: Estimate | undefined; readonly edit: Edit },
    signal: AbortSignal,
  ): Promise<PlanKey | undefined> {
    const { stderr, env } = this.#io;
    const { tasks, callId } = proposal;
    const { settings } = this.#wishes;
    const mayComment = callId !== undefined;
    const note = edit.draft === undefined ? undefined : KEPT_NOTE;
    const columns = terminalColumns(stderr);
    if (canShowPlan(this.#io)) {
      const asked = { tasks, settings, estimate, mayComment, ...(note !== undefined && { note }) };
      const key = await askPlan(asked, this.#io, signal);
      // The screen is gone; the plan stays readable.
      if (key === 'run') await print(stderr, `\n${planAsLines(tasks, columns)}`);
      return key;
    }
    const totals = planTotals({ tasks, settings, estimate }, { columns, rows: 0, style: textStyle(stderr, env) });
    const kept = note === undefined ? '' : `  ${note}\n`;
    await print(stderr, `\n${totals.map((line) => `  ${line}\n`).join('')}${planAsLines(tasks, columns)}${kept}`);
    const more = mayComment ? ' [c]omment' : '';
    return this.#person.choose(
      `  Carry out this plan? [y]es [n]o [e]dit${more}: `,
      planAnswerWords(mayComment),
      signal,
    );
  }
}

function planAnswerWords(mayComment: boolean): ReadonlyMap<string, PlanKey> {
  return new Map<string, PlanKey>([
    ['y', 'run'],
    ['yes', 'run'],
    ['n', 'stop'],
    ['no', 'stop'],
    ['e', 'edit'],
    ['edit', 'edit'],
    ...(mayComment
      ? ([
          ['c', 'comment'],
          ['comment', 'comment'],
        ] as const)
      : []),
  ]);
}

export function planAsLines(tasks: readonly PlannedTask[], columns: number): string {
  return tasks
    .map(({ id, title, dependsOn, mode }) => {
      const after = dependsOn.length === 0 ? '' : ` (after ${dependsOn.join(', ')})`;
      const words = `${id}: ${title}${mode === 'read' ? ' [reads only]' : ''}${after}`;
      return `  ${textOnOneLine(words, columns - 2)}\n`;
    })
    .join('');
}
