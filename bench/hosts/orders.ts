// The messages between the simulation and its processes with hosts.

export const RUN = 'run_scale';

export type Orders = { readonly url: string; readonly coordinator: string; readonly from: number; readonly to: number };
export type Load = { readonly stepsPerSecond: number; readonly bytes: number };
export type Told = { readonly steps: number; readonly roundTripsMs: readonly number[]; readonly leasesOver: number };

export function lineOf(n: number): string {
  return `${RUN}.${n}.1.1`;
}
