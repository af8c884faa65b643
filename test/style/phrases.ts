/**
 * Phrases that STYLE.md rules out, with what to write instead. A space stands for any white space, also across the lines of a
 * comment. Only phrases that are wrong wherever they stand belong here: a false alarm costs more than a missed phrase.
 */
export const phrases: { find: string; instead: string }[] = [
  // A person where the system is the subject.
  { find: 'nobody', instead: 'name what is missing: "no request", "unclaimed", "no member can"' },
  { find: 'somebody', instead: 'name the actor: "the lock holder", "another request", "the operator"' },
  { find: 'everybody', instead: 'name the group: "all members", "every caller"' },
  { find: 'whoever', instead: 'name the actor: "the caller", "the process that"' },
  { find: 'whosoever|whomever|whatsoever', instead: 'name it, or cut it' },

  // Fillers.
  { find: 'for the while', instead: 'cut it, or "for now"' },
  { find: 'in the meanwhile', instead: '"meanwhile"' },
  { find: 'for so long', instead: 'state the limit' },
  { find: 'just now', instead: 'cut it, or "at the moment"' },
  { find: 'any more(?=[.,;:!?)\'"`’]|\\s[–—]|$)', instead: '"no longer" before the verb' },
  { find: 'at all(?=[.,;:!?)\'"`’]|\\s[–—]|$)', instead: 'cut it' },
  { find: 'by (?:itself|themselves)', instead: 'cut it, or "automatically", "alone"' },
  { find: 'of (?:its|their) own', instead: '"its own …" before the noun, or "separate"' },

  // Translated or archaic.
  { find: 'in earnest', instead: '"for real"' },
  { find: 'without a word', instead: '"silently"' },
  { find: 'such a one', instead: 'repeat the noun' },
  { find: 'speaks? against', instead: 'say what is wrong with it' },
  { find: '(?:came|comes?) of (?:it|them|that)', instead: '"the outcome"' },
  { find: 'tests? holds? that', instead: '"a test checks that"' },
  { find: '(?:make|makes|made) good', instead: '"correct", "compensate"' },
  { find: 'mend(?:s|ed|ing)?', instead: '"fix", "correct"' },
  { find: 'odd (?:value|setting)s?', instead: '"invalid"' },
  { find: 'younge(?:r|st)', instead: '"newer", "newest"' },
  { find: 'shall', instead: '"must", or the plain present' },
  { find: 'lest', instead: '"so that … not"' },
  { find: 'upon', instead: '"on"' },
  { find: '(?:there|where|here)(?:of|in|by|upon|unto|with)', instead: 'two plain words' },
  { find: 'hitherto', instead: '"so far"' },
  { find: '(?<!there )(?:is|are|was|were) no(?! (?:longer|more|later|earlier))', instead: '"is not a …"' },

  // Another word for a concept that has one in the glossary.
  { find: '(?:bring|brings|brought|bringing) back', instead: '"reinstate" a member, "restart" a server' },
]
