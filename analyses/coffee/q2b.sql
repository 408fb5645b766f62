-- The item that brought in most, month by month.

WITH sold AS (
    SELECT strftime(created_at, '%Y-%m') AS month, item_id, sum(subtotal) AS subtotal
    FROM transaction_items
    WHERE year(created_at) BETWEEN $first_year AND $last_year
    GROUP BY month, item_id
)
SELECT s.month, m.item_name, s.subtotal
FROM sold s
JOIN menu_items m ON m.item_id = s.item_id
QUALIFY row_number() OVER (PARTITION BY s.month ORDER BY s.subtotal DESC, s.item_id) <= 1
ORDER BY s.month;
