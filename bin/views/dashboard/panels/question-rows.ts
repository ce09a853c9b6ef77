// A question of a worker as rows: the whole command, why it is asked, and what "always" would allow.

import type { Question } from '@drover/core/agent/calls/calls';
import type { Style } from '../../text/style.ts';
import { alwaysText, questionText } from '../../text/question-text.ts';
import { textCell, widthOfText, writeOutControls } from '../../text/terminal-text.ts';

export type QuestionPage = { readonly columns: number; readonly style: Style };

/** Every character is shown: the user must see what they approve. */
export function questionRows(question: Question, { columns, style }: QuestionPage): readonly string[] {
  const { tool, why } = question;
  const indent = '  ';
  const command = breakQuestionText(questionText(question), columns - indent.length);
  return [
    `${textCell(tool, columns)}:`,
    ...command.map((line) => style('bold', indent + line)),
    ...breakQuestionText(`why: ${writeOutControls(why)}`, columns),
    ...(question.field === undefined ? breakQuestionText(always(question), columns) : []),
  ];
}

function always(question: Question): string {
  return `always: allows ${alwaysText(question)}, for every worker, until this run ends`;
}

/** Breaks lines anywhere, so that nothing is left out. */
function breakQuestionText(text: string, columns: number): readonly string[] {
  return text.split('\n').flatMap((line) => {
    const rows: string[] = [''];
    for (const char of line) {
      if (widthOfText((rows.at(-1) ?? '') + char) > columns) rows.push('');
      rows[rows.length - 1] += char;
    }
    return rows;
  });
}

export function questionTitle({ task }: Question, waiting: number): string {
  const who = task ?? 'coordinator';
  return waiting > 1 ? `${who} asks · 1 of ${waiting} questions` : `${who} asks`;
}
