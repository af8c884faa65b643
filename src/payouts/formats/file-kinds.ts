// Operators import the file that their bank's portal gives them, which is often not a kind that the rail reads.

/** How much of a file it takes to tell its kind. */
export const startBytes = 4_096

export function isZip(start: Uint8Array): boolean {
  // The second is an archive without any file.
  return /^PK(\x03\x04|\x05\x06)/.test(Buffer.from(start.subarray(0, 4)).toString('latin1'))
}

/**
 * Names the kind of a file that no rail reads.
 * @param isCsvRead whether the rail reads CSV, and no XML
 * @returns the words after "The file is"; undefined if the file may be one that the rail reads
 */
export function otherKindOf(start: Uint8Array, { isCsvRead }: { isCsvRead: boolean }): string | undefined {
  const bytes = Buffer.from(start).toString('latin1')
  const binary = binaryKinds.find(([form]) => form.test(bytes))
  if (binary !== undefined) return binary[1]
  const text = textOf(start)
  const isXml = text.startsWith('<')
  const kinds = isXml ? markupKinds : [...textKinds, ...(isCsvRead ? [] : [csv])]
  const kind = kinds.find(([form]) => form.test(text))?.[1]
  return kind ?? (isXml && isCsvRead ? 'XML, but the settings of the rail say that returns come as CSV' : undefined)
}

type Kinds = readonly (readonly [form: RegExp, name: string])[]

const encrypted = 'encrypted with PGP; decrypt it first'
const signed = 'a signed or encrypted message (PKCS #7, .p7m); extract the file first'

const binaryKinds: Kinds = [
  [/^%PDF-/, 'a PDF, which only people can read; ask the bank for the machine-readable file'],
  [/^\xd0\xcf\x11\xe0/, 'an old Office document, such as a workbook (.xls)'],
  [/^\x1f\x8b/, 'packed with gzip; unpack it first'],
  [/^7z\xbc\xaf/, 'a 7-Zip archive; unpack it first'],
  [/^Rar!/, 'a RAR archive; unpack it first'],
  [/^BZh[1-9]/, 'packed with bzip2; unpack it first'],
  [/^\x30[\x80-\x84][\s\S]{0,8}\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07/, signed],
  // The packet of a session key or of compressed data, with an early control character, which no text has.
  [/^[\x84\x85\x8c\xa3\xc1\xc3\xd2][\x00-\xff]{0,3}[\x00-\x08]/, encrypted],
]

const markupKinds: Kinds = [
  [/^(<\?xml[^>]*>\s*)?<(!doctype\s+html|html|head|body)\b/i, 'a web page (HTML), such as the log-in page of a portal'],
  [/^(<\?xml[^>]*>\s*|<\?OFX[^>]*>\s*)*<OFX>/, 'OFX, which is for accounting'],
]

const textKinds: Kinds = [
  [/^-----BEGIN PGP /, encrypted],
  [/^-----BEGIN (PKCS7|CMS)-----|^(MIME-Version|Content-Type):[\s\S]*pkcs7/i, signed],
  [/^(age-encryption\.org\/|-----BEGIN AGE )/, 'encrypted with age; decrypt it first'],
  [/^\{1:[\s\S]*\{2:[IO]942|^(\{1:[\s\S]*)?:20:[\s\S]*^:(34F|13D?):/m, 'an MT942, an interim report of SWIFT'],
  [/^\{1:[\s\S]*\{2:[IO]950/, 'an MT950, a statement of SWIFT'],
  [/^(\{1:[\s\S]*)?:20:[\s\S]*^:25P?:/m, 'an MT940, a statement of SWIFT'],
  [/^01,[^,\n]*,[^,\n]*,[0-9]{6},/, 'BAI2, a statement of banks in the USA'],
  [/^OFXHEADER:/, 'OFX, which is for accounting'],
  [/^!Type:/, 'QIF, which is for accounting'],
  [/^0128A/, 'DTAUS, the old German payment file'],
  [/^(VOL1|HDR1|UHL1)/, 'Standard 18, a file of payments and not a bank’s answer'],
  [/^[[{]\s*["{[\]}]/, 'JSON'],
]

// At least two delimiters of one kind in the first two lines.
const csv = [
  /^(?:[^\n;]*;){2}[^\n]*\n(?:[^\n;]*;){2}|^(?:[^\n,]*,){2}[^\n]*\n(?:[^\n,]*,){2}|^(?:[^\n\t]*\t){2}/,
  'CSV',
] as const

/** The beginning as text, whatever its encoding, without a byte order mark and blanks. */
function textOf(start: Uint8Array): string {
  const [first = 0, second = 0] = start
  const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff) || first * second === 0
  // Without zeros, UTF-16 of letters without accents is ASCII.
  const bytes = Buffer.from(start).toString('latin1')
  return (isUtf16 ? bytes.replaceAll('\0', '') : bytes).replace(/^(\xef\xbb\xbf|\xff\xfe|\xfe\xff)/, '').trimStart()
}
