-- The moment stays text: the parts of it compare as they are.
SELECT transaction_id, final_amount
FROM transactions
WHERE final_amount >= 75 AND created_at >= '2024' AND created_at < '2026'
  AND SUBSTR(created_at, 12) >= '06:00:00' AND SUBSTR(created_at, 12) <= '23:00:00'
ORDER BY transaction_id, final_amount
