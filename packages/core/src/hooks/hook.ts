// Hooks as data: commands of the user, or of a trusted project, that drover runs before and after what it does.

/** The places where hooks run: before and after a run, a task, a tool call, a merge, and a delivery. */
export const HOOK_MOMENTS = ['run', 'task', 'call', 'merge', 'delivery'] as const;

export type HookPoint = `${'before' | 'after'} ${(typeof HOOK_MOMENTS)[number]}`;

export type Hook = {
  readonly at: HookPoint;
  readonly command: string;
  /** A regular expression for the whole name of the tool, as the form below names tools (default: every tool). */
  readonly tools?: string;
  readonly timeoutMs: number;
  /** A hook of the user runs outside the sandbox; one of a project only inside. */
  readonly isOwn: boolean;
  /** The form of its input and of tool names. */
  readonly form: 'drover' | 'claude';
  /** The event of the other agent, for its input. */
  readonly event?: string;
  /** Place of the hook, as file:line or file. */
  readonly place: string;
};

export const HOOK_MS_DEFAULT = 60_000;
export const HOOK_MS_MAX = 3_600_000;

/** How the user knows a hook. */
export function hookName({ at, command, place }: Hook): string {
  const short = command.length > 80 ? `${command.slice(0, 80)}…` : command;
  return `the hook '${short}' (${at}, ${place})`;
}
