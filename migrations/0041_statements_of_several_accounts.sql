-- A statement of several accounts is imported for those of the rail. The others are kept by their numbers: once the rail has one of
-- them, the file is imported for it, too. A booking knows its message, since a
-- notice and a statement may book the same money on different days, but two statements never do.

set local lock_timeout = '5s';

alter table bank_files add column skipped_accounts text[] not null default '{}';

alter table bank_records add column message text check (message in ('pain.002', 'camt.052', 'camt.053', 'camt.054', 'ARUCS'));
-- An interim report books nothing.
alter table bank_records add constraint booked_finally check (message <> 'camt.052' or booked_on is null);

-- What a partner's members read beside a payment, in the characters of SEPA; empty if nothing. A payment keeps the text that it had when
-- it joined its batch, since the file of a batch never changes.
alter table partners add column remittance_text text not null default ''
  constraint remittance_text_in_sepa_characters check (remittance_text ~ '^[A-Za-z0-9/?:().,''+ -]{0,140}$');
alter table payouts add column remittance_text text not null default '';
