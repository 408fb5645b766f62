-- As in the analysis, and with the sale that an item belongs to.

PARAMETER first_year = 2024;
PARAMETER last_year = 2025;

CREATE TABLE transactions (
    transaction_id TEXT NOT NULL,
    store_id INT NOT NULL,
    final_amount DECIMAL(18,3) NOT NULL,
    created_at TIMESTAMP NOT NULL,
    user_id INT
) FROM 'transactions/*.csv' OR 'transactions*.csv';

CREATE TABLE transaction_items (
    transaction_id TEXT,
    item_id INT NOT NULL,
    quantity INT NOT NULL,
    subtotal DECIMAL(18,3) NOT NULL,
    created_at TIMESTAMP NOT NULL
) FROM 'transaction_items/*.csv' OR 'transaction_items*.csv';

CREATE TABLE users (
    user_id INT NOT NULL,
    birthdate DATE NOT NULL
) FROM 'users/*.csv' OR 'users*.csv';

CREATE TABLE stores (
    store_id INT NOT NULL,
    store_name TEXT NOT NULL
) FROM 'stores/*.csv' OR 'stores*.csv';

CREATE TABLE menu_items (
    item_id INT NOT NULL,
    item_name TEXT NOT NULL
) FROM 'menu_items/*.csv' OR 'menu_items*.csv';
