// The list of all hostile commands.

import type { Attack } from './attack.ts';
import { GIT_ATTACKS } from './git.ts';
import { MACHINE_ATTACKS } from './machine.ts';
import { MEETING_ATTACKS } from './meetings.ts';
import { SHELL_ATTACKS } from './shell.ts';

export const ATTACKS: readonly Attack[] = [...SHELL_ATTACKS, ...GIT_ATTACKS, ...MACHINE_ATTACKS, ...MEETING_ATTACKS];
