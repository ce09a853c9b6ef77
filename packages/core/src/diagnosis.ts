// Diagnostics: log lines that help to find a bug in drover itself, each with a level.
//
//   error  drover broke: a run, a turn or a request ended with a bug
//   warn   drover continues with less, or after a repair: a lost thread, a repaired journal, a missing sandbox
//   info   a run, session or turn begins or ends
//   debug  everything else: requests, calls, questions, waits, tasks, merges and gates; the default

type DiagnosticLevel = 'debug' | 'info' | 'warn' | 'error';

export type Diagnose = (message: string, fields: object, level?: DiagnosticLevel) => void;
