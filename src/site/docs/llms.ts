import { type Guide, readText } from './guides.ts'
import type { Site } from './layout.ts'
import { guideAddress, plainTextOf } from './markdown.ts'
import type { Operation } from './openapi.ts'
import { operationAddress } from './reference.ts'
import { samplesOf } from './samples.ts'

/** The guides for partners and operators. The other folders are about the source. */
const groups = [
  { title: 'Guides', folder: 'guides/' },
  { title: 'Reference', folder: 'reference/' },
  { title: 'Operations', folder: 'operations/' },
]
const optional = { title: 'Optional', folder: 'internals/' }

/** The table of contents for language models. Source: llmstxt.org */
export async function llmsIndex({ document, guides, operations }: Site): Promise<string> {
  const lists = await Promise.all(
    [...groups, optional].map(async ({ title, folder }) => {
      const lines = guides.filter(({ file }) => file.startsWith(folder)).map(guideLine)
      return { title, lines: await Promise.all(lines) }
    }),
  )
  const sections = [...lists.slice(0, -1), { title: 'API', lines: operations.map(operationLine) }, ...lists.slice(-1)]
  return `# Midmonth

> ${plainTextOf(document.info.description)}

Everything in one file: [llms-full.txt](/llms-full.txt). The API as a schema: [openapi.json](/openapi.json).

${sections.map(({ title, lines }) => `## ${title}\n\n${lines.join('\n')}`).join('\n\n')}
`
}

/** Every guide for partners and operators, and every operation with a request, as one Markdown file. */
export async function llmsFull({ document, guides, operations }: Site): Promise<string> {
  const wanted = groups.flatMap(({ folder }) => guides.filter(({ file }) => file.startsWith(folder)))
  const pages = await Promise.all(
    wanted.map(async guide => `<!-- ${guideAddress(guide.file)} -->\n\n${(await readText(guide)).trim()}`),
  )
  const sections = operations.map(operation => {
    const [curl] = samplesOf(operation, document)
    const about = operation.description === undefined ? [] : [operation.description]
    return [
      `## ${operation.summary}`,
      `\`${operation.method} ${operation.path}\` (\`${operation.operationId}\`)`,
      ...about,
      `\`\`\`sh\n${curl.code}\n\`\`\``,
    ].join('\n\n')
  })
  return `${[...pages, '# Operations of the API', ...sections].join('\n\n')}\n`
}

async function guideLine(guide: Guide): Promise<string> {
  // The first sentence after the title states the purpose of the page.
  const [, paragraph = ''] = /^# .+\n+([^#`|-][\s\S]*?)(?:\n\n|$)/.exec(await readText(guide)) ?? []
  const [sentence = ''] = plainTextOf(paragraph).split(/(?<=\.)\s/)
  return `- [${guide.title}](${guideAddress(guide.file)})${sentence === '' ? '' : `: ${sentence}`}`
}

function operationLine(operation: Operation): string {
  return `- [${operation.summary}](${operationAddress(operation)}): ${operation.method} ${operation.path}`
}
