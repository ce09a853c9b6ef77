// A ring buffer that holds the last bytes of a stream. It allocates once, so large streams cost no allocations.

export class Ring {
  readonly #capacity: number;
  #buffer: Buffer | undefined;
  #at = 0;
  #length = 0;
  #hasLost = false;

  /** Allocates the buffer with the first chunk. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get length(): number {
    return this.#length;
  }

  /** True if bytes were overwritten since the buffer was last emptied. */
  get hasLost(): boolean {
    return this.#hasLost;
  }

  add(chunk: Uint8Array): void {
    this.#buffer ??= Buffer.allocUnsafe(this.#capacity);
    const last = chunk.subarray(-this.#capacity);
    const toEnd = Math.min(last.length, this.#capacity - this.#at);
    this.#buffer.set(last.subarray(0, toEnd), this.#at);
    this.#buffer.set(last.subarray(toEnd), 0);
    this.#at = (this.#at + last.length) % this.#capacity;
    this.#hasLost ||= this.#length + chunk.length > this.#capacity;
    this.#length = Math.min(this.#capacity, this.#length + last.length);
  }

  /** Returns a copy of the bytes, oldest first. */
  contents(): Buffer {
    const buffer = this.#buffer ?? Buffer.alloc(0);
    if (this.#length < this.#capacity) return Buffer.from(buffer.subarray(0, this.#length));
    return Buffer.concat([buffer.subarray(this.#at), buffer.subarray(0, this.#at)]);
  }

  empty(): void {
    this.#at = 0;
    this.#length = 0;
    this.#hasLost = false;
  }
}
