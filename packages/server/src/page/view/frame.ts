// Draws at most once per frame, and not at all while the page is hidden.

export class Frame {
  readonly #draw: (nowMs: number) => void;
  #asked: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;

  constructor(draw: (nowMs: number) => void) {
    this.#draw = draw;
  }

  /** Something has changed. */
  ask(): void {
    if (this.#isOver) return;
    this.#asked ??= requestAnimationFrame((nowMs) => {
      this.#asked = undefined;
      this.#draw(nowMs);
    });
  }

  /** Only the clocks change, so the next second is soon enough. */
  askIn(ms: number): void {
    if (this.#isOver) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.ask();
    }, ms);
  }

  stop(): void {
    this.#isOver = true;
    if (this.#asked !== undefined) cancelAnimationFrame(this.#asked);
    clearTimeout(this.#timer);
  }
}

/** True once in so many milliseconds: for what need not be drawn with every frame. */
export class Beat {
  readonly #everyMs: number;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  due(nowMs: number): boolean {
    if (nowMs - this.#lastMs < this.#everyMs) return false;
    this.#lastMs = nowMs;
    return true;
  }

  reset(): void {
    this.#lastMs = Number.NEGATIVE_INFINITY;
  }
}

export function wantsLessMotion(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches;
}
