// Draws the lanes of a run onto one canvas: a band for each task, in it a bar for each step and call.
//
// It is given everything and keeps nothing. Bars that are narrower than a pixel are drawn as one where they
// fall together, so a frame costs what can be seen and not what has happened.

import { pageClockTime } from '../../../words.ts';
import type { Bar, Lane } from '../../../timeline.ts';

export const AXIS_PX = 24;
export const LANE_PX = 36;
const LABEL_PX = 14;
const TRACK_PX = 13;
const TICK_PX_MIN = 84;
const TICKS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 43_200].map(
  (seconds) => seconds * 1_000,
);

export type Window = { readonly fromMs: number; readonly toMs: number };
export type Tone = 'plain' | 'good' | 'bad' | 'held';
export type Palette = Readonly<
  Record<
    | 'text'
    | 'muted'
    | 'line'
    | 'step'
    | 'asked'
    | 'call'
    | 'wait'
    | 'bad'
    | 'good'
    | 'merge'
    | 'gate'
    | 'plain'
    | 'focus',
    string
  >
>;

export type Scene = {
  readonly lanes: readonly Lane[];
  readonly window: Window;
  readonly nowMs: number; // where open bars end
  readonly isLive: boolean;
  readonly widthPx: number;
  readonly palette: Palette;
  readonly chosen: { readonly worker: number; readonly bar: number } | undefined;
  readonly toneOf: (task: string) => Tone;
  readonly titleOf: (task: string) => string;
};

export function timelineHeight(lanes: number): number {
  return AXIS_PX + lanes * LANE_PX;
}

export function timelinePalette(element: Element): Palette {
  const style = getComputedStyle(element);
  const names = [
    'text',
    'muted',
    'line',
    'step',
    'asked',
    'call',
    'wait',
    'bad',
    'good',
    'merge',
    'gate',
    'plain',
    'focus',
  ] as const;
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])) as Palette;
}

export function timelineX(ms: number, { fromMs, toMs }: Window, widthPx: number): number {
  return ((ms - fromMs) / Math.max(1, toMs - fromMs)) * widthPx;
}

export function timelineMs(x: number, { fromMs, toMs }: Window, widthPx: number): number {
  return fromMs + (x / Math.max(1, widthPx)) * (toMs - fromMs);
}

export function drawTimeline(context: CanvasRenderingContext2D, scene: Scene): void {
  const { lanes, widthPx, palette } = scene;
  context.clearRect(0, 0, widthPx, timelineHeight(lanes.length));
  context.textBaseline = 'middle';
  drawTimelineAxis(context, scene);
  lanes.forEach((lane, at) => drawTimelineLane(context, scene, { lane, top: AXIS_PX + at * LANE_PX }));
  if (!scene.isLive) return;
  const x = Math.round(timelineX(scene.nowMs, scene.window, widthPx)) - 0.5;
  context.fillStyle = palette.focus;
  context.globalAlpha = 0.5;
  context.fillRect(x, AXIS_PX - 6, 1, timelineHeight(lanes.length));
  context.globalAlpha = 1;
}

function drawTimelineAxis(context: CanvasRenderingContext2D, { lanes, window, widthPx, palette }: Scene): void {
  const perPx = (window.toMs - window.fromMs) / Math.max(1, widthPx);
  const stepMs = TICKS_MS.find((ms) => ms / perPx >= TICK_PX_MIN) ?? 86_400_000;
  context.font = `11px ${getComputedStyle(context.canvas).fontFamily}`;
  for (let ms = Math.ceil(window.fromMs / stepMs) * stepMs; ms <= window.toMs; ms += stepMs) {
    const x = Math.round(timelineX(ms, window, widthPx));
    context.fillStyle = palette.line;
    context.fillRect(x, AXIS_PX - 4, 1, timelineHeight(lanes.length));
    context.fillStyle = palette.muted;
    context.fillText(pageClockTime(ms), x + 4, AXIS_PX / 2);
  }
  context.fillStyle = palette.line;
  lanes.forEach((_, at) => context.fillRect(0, AXIS_PX + (at + 1) * LANE_PX - 1, widthPx, 1));
}

type PlacedLane = { readonly lane: Lane; readonly top: number };

function drawTimelineLane(context: CanvasRenderingContext2D, scene: Scene, { lane, top }: PlacedLane): void {
  const { window, widthPx, nowMs, palette } = scene;
  for (const { task, fromMs, toMs } of lane.spans) {
    const end = toMs ?? nowMs;
    if (end < window.fromMs || fromMs > window.toMs) continue;
    const from = Math.max(-8, timelineX(fromMs, window, widthPx));
    const to = Math.min(widthPx + 8, timelineX(end, window, widthPx));
    drawTimelineBand(context, scene, { task, from, to, top });
  }
  if (lane.cutMs > window.fromMs) {
    const to = timelineX(lane.cutMs, window, widthPx);
    hatchTimelineBar(context, { x: 0, y: top + LABEL_PX + 4, width: to, height: TRACK_PX }, palette.line);
  }
  drawTimelineBars(context, scene, { lane, top: top + LABEL_PX + 4 });
}

type Band = { readonly task: string; readonly from: number; readonly to: number; readonly top: number };

function drawTimelineBand(context: CanvasRenderingContext2D, scene: Scene, { task, from, to, top }: Band): void {
  const { palette } = scene;
  const tone = scene.toneOf(task);
  const width = Math.max(2, to - from);
  context.fillStyle = tone === 'plain' ? palette.plain : palette[tone === 'held' ? 'wait' : tone];
  context.globalAlpha = tone === 'plain' ? 1 : 0.13;
  roundTimelineBar(context, { x: from, y: top + 2, width, height: LANE_PX - 4 }, 5);
  context.globalAlpha = 1;
  const left = Math.max(from, 0) + 6;
  const room = to - left - 4;
  if (room < 24) return;
  context.save();
  context.beginPath();
  context.rect(left, top, room, LABEL_PX + 4);
  context.clip();
  context.fillStyle = palette.muted;
  context.fillText(scene.titleOf(task), left, top + 3.5 + LABEL_PX / 2);
  context.restore();
}

function drawTimelineBars(context: CanvasRenderingContext2D, scene: Scene, { lane, top }: PlacedLane): void {
  const { window, widthPx, nowMs, chosen } = scene;
  let lastX = -1;
  let lastKind = '';
  for (const bar of lane.bars) {
    const end = bar.toMs ?? nowMs;
    if (end < window.fromMs || bar.fromMs > window.toMs) continue;
    const from = Math.max(-8, timelineX(bar.fromMs, window, widthPx));
    const to = Math.min(widthPx + 8, timelineX(end, window, widthPx));
    // Spans too narrow to tell apart are drawn once.
    const isThin = to - from < 1;
    if (isThin && Math.floor(from) === lastX && bar.kind === lastKind && bar.state !== 'bad') continue;
    lastX = isThin ? Math.floor(from) : -1;
    lastKind = bar.kind;
    const place = placeOfTimelineBar(bar, { from, to, top });
    drawTimelineBar(context, scene, { bar, box: place });
    if (chosen?.worker === lane.worker && chosen.bar === bar.id) drawTimelineRing(context, scene, place);
  }
}

type Box = { readonly x: number; readonly y: number; readonly width: number; readonly height: number };

function placeOfTimelineBar({ kind, row, rows }: Bar, { from, to, top }: Omit<Band, 'task'>): Box {
  const width = Math.max(2, to - from - (to - from > 4 ? 1 : 0)); // a hair of air between neighbours
  if (kind !== 'call' || rows === 1) return { x: from, y: top, width, height: TRACK_PX };
  const height = (TRACK_PX - (rows - 1)) / rows;
  return { x: from, y: top + row * (height + 1), width, height };
}

type PlacedBar = { readonly bar: Bar; readonly box: Box };

function drawTimelineBar(context: CanvasRenderingContext2D, scene: Scene, { bar, box }: PlacedBar): void {
  const { palette, window, widthPx } = scene;
  const radius = Math.min(3, box.height / 2, box.width / 2);
  switch (bar.kind) {
    case 'step': {
      // Asked, then answered.
      const first = bar.firstMs === undefined ? box.x + box.width : timelineX(bar.firstMs, window, widthPx);
      const split = Math.min(box.x + box.width, Math.max(box.x, first));
      context.fillStyle = palette.asked;
      roundTimelineBar(context, box, radius);
      context.fillStyle = bar.state === 'bad' ? palette.bad : palette.step;
      if (box.x + box.width - split >= 0.5 || bar.firstMs !== undefined)
        roundTimelineBar(context, { ...box, x: split, width: Math.max(2, box.x + box.width - split) }, radius);
      return;
    }
    case 'wait':
      return hatchTimelineBar(context, box, palette.wait);
    case 'call':
      if (bar.state === 'held') return hatchTimelineBar(context, box, palette.call);
      context.fillStyle = bar.state === 'bad' ? palette.bad : palette.call;
      return roundTimelineBar(context, box, radius);
    case 'merge':
    case 'gate':
      context.fillStyle = bar.state === 'bad' ? palette.bad : palette[bar.kind];
      return roundTimelineBar(context, box, radius);
  }
}

function drawTimelineRing(context: CanvasRenderingContext2D, { palette }: Scene, { x, y, width, height }: Box): void {
  context.strokeStyle = palette.text;
  context.lineWidth = 1.5;
  context.beginPath();
  context.roundRect(x - 2, y - 2, width + 4, height + 4, 4);
  context.stroke();
}

function roundTimelineBar(context: CanvasRenderingContext2D, { x, y, width, height }: Box, radius: number): void {
  if (width < 4) return context.fillRect(x, y, width, height);
  context.beginPath();
  context.roundRect(x, y, width, height, radius);
  context.fill();
}

/** Time in which it waited for another agent or the user. */
function hatchTimelineBar(context: CanvasRenderingContext2D, { x, y, width, height }: Box, colour: string): void {
  context.save();
  context.beginPath();
  context.roundRect(x, y, Math.max(2, width), height, 3);
  context.clip();
  context.globalAlpha = 0.2;
  context.fillStyle = colour;
  context.fillRect(x, y, width, height);
  context.globalAlpha = 0.85;
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let at = Math.floor((x - height) / 6) * 6; at < x + width; at += 6) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}
