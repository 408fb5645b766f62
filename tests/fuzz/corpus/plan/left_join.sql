SELECT DISTINCT s.store_name, t.final_amount + 1.50 AS amount, u.birthdate
FROM stores s LEFT JOIN transactions t ON t.store_id = s.store_id
LEFT JOIN users u ON u.user_id = t.user_id AND u.birthdate > DATE '1990-01-01'
WHERE t.created_at IS NULL OR year(t.created_at) BETWEEN $first_year AND 2030;
