import { announce } from '../../act.ts'
import { Field, Form } from '../../components/form.tsx'
import { Page, Panel } from '../../components/layout.tsx'
import { useNavigateIfHere } from '../../components/navigate-if-here.ts'
import { operators } from '../../operators.ts'
import { refreshSession } from '../../session.ts'
import { defaultSettings, readSettings, SettingFields } from './settings.tsx'

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** Creates a partner. The partner's page lists the next steps. */
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
              announce(`${name} created`, 'operator-partners')
              // The menu lists the session's partners.
              await refreshSession()
              navigateIfHere(`/console/operator/partners/${id}`)
            }}
          >
            <Field label="Name" name="name" note="Shown to the partner’s users" isRequired />
            <SettingFields values={{ ...defaultSettings, timeZone: zone }} />
          </Form>
        </Panel>
      </div>
    </Page>
  )
}
