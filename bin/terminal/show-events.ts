// Shows events as they come, and stops while a question is on the screen.

import { ReaderLost, type Shown } from '@drover/core/bus';
import { iterateInGroups } from '@drover/core/one-by-one';
import { type Io, print } from '../io.ts';
import type { View } from '../views/view.ts';
import type { Person } from './person.ts';

export type Screen = { readonly view: View; readonly person: Person | undefined; readonly io: Io };

export async function showEventsOnTerminal(events: AsyncIterable<Shown>, { view, person, io }: Screen): Promise<void> {
  person?.seesMore();
  try {
    for await (const group of iterateInGroups(events)) {
      for (const event of group) {
        if (person !== undefined) await person.untilUnasked();
        const room = view.show(event);
        if (room !== undefined) await room;
        person?.sees(event);
      }
    }
  } catch (error) {
    if (!(error instanceof ReaderLost)) throw error;
    await print(io.stderr, 'drover: the output was read too slowly, so the rest of it is not shown\n');
  } finally {
    person?.seesNoMore();
  }
  await view.close();
}
