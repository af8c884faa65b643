const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' }

/** Escapes a text for the content of an element or an attribute. Characters that XML forbids become U+FFFD. */
export function escapeXml(text: string): string {
  return text.replace(forbidden, '\uFFFD').replace(/[&<>"']/g, character => escapes[character] ?? '')
}

const forbidden = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu

/** Collects small texts, so that writing a file does not take one step per payment. */
export async function* inChunks(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let chunk = ''
  for await (const text of texts) {
    chunk += text
    if (chunk.length < chunkChars) continue
    yield chunk
    chunk = ''
  }
  if (chunk !== '') yield chunk
}

const chunkChars = 65_536
