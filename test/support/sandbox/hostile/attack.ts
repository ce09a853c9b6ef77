// A hostile command, as data. Each one tries to read, change, reach or leave behind something outside its workspace.
//
// In a command @OUT@ is a folder outside, @CAN@ the folder in which a new file means that the command got through, and
// so on: `world.ts` has the list.

export type Attack = {
  readonly name: string;
  readonly family: string;
  readonly command: string;
  /**
   * True if it succeeds without a sandbox on a machine with git, Node and Python. The others need luck or a service.
   */
  readonly bites: boolean;
};

export function family(name: string, commands: Readonly<Record<string, string>>, bites = true): readonly Attack[] {
  return Object.entries(commands).map(([each, command]) => ({
    name: `${name}: ${each}`,
    family: name,
    command,
    bites,
  }));
}
