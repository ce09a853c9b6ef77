// Reads the text of one of drover's files by its format, or throws all of its mistakes as one UsageError.

import { UsageError } from '@drover/core/errors';
import { type Format, type ReadDocument, readDocument } from '@drover/documents/read-document';

/** `file`: the user's name for it. */
export function requireFileDocument<Value>(text: string, file: string, format: Format<Value>): ReadDocument<Value> {
  const read = readDocument(text, file, format);
  if ('mistakes' in read) throw new UsageError(read.mistakes.join('\n'));
  return read;
}
