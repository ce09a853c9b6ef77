// A line: frames between one attempt on a host and its run, in order and each exactly once.
//
// Guarantees
//   1. Frames are numbered. The receiver takes each number once, in order, and ignores the others.
//   2. The sender keeps a frame until it is acknowledged, and sends it again after a reconnect or a silence. So a Redis
//      that restarts, or loses its last second, loses no frame.
//   3. The frames that wait are bounded. A line that exceeds the bound is broken, and its attempt is lost.

const FRAMES_MAX = 50_000;
const BYTES_MAX = 64 * 1024 * 1024;
const WINDOW_BYTES = 4 * 1024 * 1024; // of a transfer that is on its way
const RESENT_BYTES_MAX = 1024 * 1024; // at once
const SILENT_MS_MAX = 3_000;

/** The content of a frame: plain data, and bytes if it carries a part of a pack. */
export type Frame<Body> = { readonly body: Body; readonly blob?: Buffer };

export type LineItem =
  | { readonly t: 'frame'; readonly line: string; readonly n: number; readonly body: unknown }
  | { readonly t: 'ack'; readonly line: string; readonly n: number }
  | { readonly t: 'note'; readonly body: unknown };

/** The part of a mailbox that a line uses. */
type Outlet = {
  readonly send: (to: string, item: LineItem, blob?: Buffer) => void;
  readonly now: () => number;
};

export type LineEnds<In> = {
  readonly id: string;
  readonly peer: string; // the address of the other end's inbox
  readonly hear: (frame: Frame<In>) => void;
  readonly broken: (why: string) => void;
};

type Kept = { readonly n: number; readonly body: unknown; readonly blob: Buffer | undefined; readonly bytes: number };

export class Line<In = unknown, Out = unknown> {
  readonly #ends: LineEnds<In>;
  readonly #outlet: Outlet;
  readonly #kept: Kept[] = [];
  readonly #waiting: (() => void)[] = []; // for room
  #bytes = 0;
  #sent = 0;
  #heard = 0;
  #progressAt: number;
  #isClosed = false;

  constructor(ends: LineEnds<In>, outlet: Outlet) {
    this.#ends = ends;
    this.#outlet = outlet;
    this.#progressAt = outlet.now();
  }

  get id(): string {
    return this.#ends.id;
  }

  get peer(): string {
    return this.#ends.peer;
  }

  send(body: Out, blob?: Buffer): void {
    if (this.#isClosed) return;
    const bytes = (blob?.length ?? 0) + sizeOfLineFrame(body);
    if (this.#kept.length === 0) this.#progressAt = this.#outlet.now();
    this.#sent += 1;
    const frame: Kept = { n: this.#sent, body, blob, bytes };
    this.#kept.push(frame);
    this.#bytes += bytes;
    if (this.#kept.length > FRAMES_MAX || this.#bytes > BYTES_MAX)
      return this.break(`more than ${BYTES_MAX / 1024 / 1024} MB wait for the other end`);
    this.#post(frame);
  }

  /** Resolves when a transfer may send its next part. */
  async room(): Promise<void> {
    while (this.#bytes > WINDOW_BYTES && !this.#isClosed)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Resolves when the other end has all frames. */
  async drained(): Promise<void> {
    while (this.#kept.length > 0 && !this.#isClosed) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Takes an arrived frame. Returns the number to acknowledge. */
  take(n: number, frame: Frame<In>): number {
    if (n === this.#heard + 1 && !this.#isClosed) {
      this.#heard = n;
      this.#ends.hear(frame);
    }
    return this.#heard;
  }

  acknowledge(n: number): void {
    let isNews = false;
    while ((this.#kept[0]?.n ?? Infinity) <= n) {
      this.#bytes -= this.#kept.shift()?.bytes ?? 0;
      isNews = true;
    }
    if (!isNews) return;
    this.#progressAt = this.#outlet.now();
    this.#wake();
  }

  /** Sends again what may be lost: after a reconnect, or if no acknowledgement came for a while. */
  resend(isDue: 'now' | 'if silent'): void {
    if (this.#isClosed || this.#kept.length === 0) return;
    if (isDue === 'if silent' && this.#outlet.now() - this.#progressAt < SILENT_MS_MAX) return;
    this.#progressAt = this.#outlet.now();
    let bytes = 0;
    for (const frame of this.#kept) {
      bytes += frame.bytes;
      this.#post(frame);
      if (bytes > RESENT_BYTES_MAX) return;
    }
  }

  /** Ends the line and says why to its owner. */
  break(why: string): void {
    if (this.#isClosed) return;
    this.close();
    this.#ends.broken(why);
  }

  close(): void {
    this.#isClosed = true;
    this.#kept.length = 0;
    this.#bytes = 0;
    this.#wake();
  }

  #post({ n, body, blob }: Kept): void {
    this.#outlet.send(this.peer, { t: 'frame', line: this.id, n, body }, blob);
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

/** A cheap estimate: the length of the strings. */
function sizeOfLineFrame(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 8;
  let size = 0;
  for (const key in value) size += key.length + sizeOfLineFrame((value as Record<string, unknown>)[key]);
  return size;
}
