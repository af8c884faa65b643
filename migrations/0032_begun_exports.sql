-- An export by hand that was killed may have left its file, which an operator may have carried to the bank. Where it was being
-- written is kept, so that a second export cannot bring the same payments to the bank again unnoticed.
-- compatible-with: 0028

set local lock_timeout = '5s';

alter table payout_batches
  -- Machine and folder of the first export by hand that began to write the file; null if none did.
  add column exported_to text check (length(exported_to) between 1 and 5000);
