import { Field, Form } from '../../components/form.tsx'
import { Page, Panel } from '../../components/layout.tsx'
import { useNavigateIfHere } from '../../components/navigate-if-here.ts'
import { defaultSettings } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { reload } from '../../query.ts'
import { refreshSession } from '../../session.ts'
import { toast } from '../../toasts.ts'
import { readSettings, settingFields } from './settings.tsx'

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** Creates a partner. What it needs next is on its page. */
export default function NewPartner() {
  const navigateIfHere = useNavigateIfHere()
  return (
    <Page title="New partner" back={{ href: '/console/operator/partners', title: 'Partners' }}>
      <div class="narrow">
        <Panel>
          <Form
            submit="Create the partner"
            onSubmit={async ({ name = '', ...fields }) => {
              const { id } = await operators.createPartner({ name, settings: readSettings(fields) })
              toast(`${name} is created`)
              reload('operator-partners')
              // The menu lists the partners of the session.
              await refreshSession()
              navigateIfHere(`/console/operator/partners/${id}`)
            }}
          >
            {problemOf => (
              <>
                <Field label="Name" name="name" problem={problemOf('name')} note="As its users see it" isRequired />
                {settingFields({ ...defaultSettings, timeZone: zone }, problemOf)}
              </>
            )}
          </Form>
        </Panel>
      </div>
    </Page>
  )
}
