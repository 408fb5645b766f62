-- Large sales during opening hours.

PARAMETER opens = '06:00:00';
PARAMETER closes = '23:00:00';
PARAMETER minimum = 75;

SELECT transaction_id, final_amount
FROM transactions
WHERE year(created_at) BETWEEN $first_year AND $last_year
  AND time_of_day(created_at) BETWEEN $opens AND $closes
  AND final_amount >= $minimum
ORDER BY transaction_id;
