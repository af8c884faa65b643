import pino from 'pino'
import { connect } from '../../src/database/connect.ts'
import type { Harness } from '../harness/harness.ts'

export type Killer = { arm(records: number): Promise<void>; disarm(): Promise<void>; stop(): Promise<void> }

/**
 * Makes the database roll back the transaction that stores the n-th of the next bank records, as if the storing process
 * were killed.
 */
export async function installKiller({ host, superuser, database }: Harness): Promise<Killer> {
  const connection = { host, user: superuser, database }
  const { pool, close } = connect(connection, { log: pino({ level: 'silent' }), connectionsMax: 1 })
  await pool.query(`
    create schema killer;
    create sequence killer.records;
    create table killer.last_record (number bigint);
    create function killer.kill() returns trigger language plpgsql security definer as $$
    begin
      -- A sequence survives the rollback, so this happens once.
      if exists (select from killer.last_record) and nextval('killer.records') = (select number from killer.last_record) then
        raise exception 'killed';
      end if;
      return new;
    end $$;
    create trigger killer before insert on public.bank_records for each row execute function killer.kill()`)
  return {
    async arm(records) {
      await pool.query(`select setval('killer.records', 1, false)`)
      await pool.query('insert into killer.last_record values ($1)', [records])
    },
    async disarm() {
      await pool.query('truncate killer.last_record')
    },
    stop: close,
  }
}
