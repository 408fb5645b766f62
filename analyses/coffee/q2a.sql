-- The item sold most often, month by month.

WITH sold AS (
    SELECT strftime(created_at, '%Y-%m') AS month, item_id, sum(quantity) AS quantity
    FROM transaction_items
    WHERE year(created_at) BETWEEN $first_year AND $last_year
    GROUP BY month, item_id
)
SELECT s.month, m.item_name, s.quantity
FROM sold s
JOIN menu_items m ON m.item_id = s.item_id
QUALIFY row_number() OVER (PARTITION BY s.month ORDER BY s.quantity DESC, s.item_id) <= 1
ORDER BY s.month;
