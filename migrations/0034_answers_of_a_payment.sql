-- All answers of the bank about a payment are shown with it, not only those that booked money.
drop index bank_records_booked;
create index bank_records_of_reference on bank_records (rail, reference, booked_on);
