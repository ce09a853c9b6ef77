// The exit codes of drover's commands. `run_end` carries them, too.

export const EXIT_CODES = {
  done: 0,
  internal: 1,
  usage: 2,
  incomplete: 3,
  gate: 4,
  conflict: 5,
  budget: 6,
  deadline: 7,
  blocked: 8,
  provider: 9,
  interrupted: 130,
  terminated: 143,
} as const;

export type ExitName = keyof typeof EXIT_CODES;
