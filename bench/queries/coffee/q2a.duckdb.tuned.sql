-- Groups by numbers; the text of a month is made once per group.
WITH sold AS (
    SELECT 100 * year(created_at) + month(created_at) AS month, item_id, sum(quantity) AS quantity
    FROM transaction_items()
    WHERE created_at >= TIMESTAMP '2024-01-01' AND created_at < TIMESTAMP '2026-01-01'
    GROUP BY month, item_id
)
SELECT format('{:04d}-{:02d}', s.month // 100, s.month % 100) AS month, m.item_name, s.quantity
FROM sold s
JOIN menu_items() m ON m.item_id = s.item_id
QUALIFY row_number() OVER (PARTITION BY s.month ORDER BY s.quantity DESC, s.item_id) <= 1
ORDER BY s.month;
