/* SPDX-License-Identifier: Apache-2.0 */
/* test_parser.c - what SQL means, what is refused and where, and that no text can do harm.
 *
 * Method: trees are printed as s-expressions and compared, case by case and for all pairs of
 * operators against a naive model of precedence; refusals are compared with place and message; the
 * bounds are tested at the last value that passes and the first that does not; one script that uses
 * everything is cut at every byte, loses every token, and is parsed with every allocation failing.
 */
#include "unit/test.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/buf.h"
#include "engine/sql/lexer.h"
#include "engine/sql/parser.h"

/* --- the printer --- */

static void print_query(struct buf *out, const struct ast_query *query);

static void print_order(struct buf *out, const struct ast_order *order, uint32_t count);

static const char *const operator_names[] = {
    [AST_OP_NONE] = "?",     [AST_OP_ADD] = "+",
    [AST_OP_SUBTRACT] = "-", [AST_OP_MULTIPLY] = "*",
    [AST_OP_DIVIDE] = "/",   [AST_OP_INTEGER_DIVIDE] = "//",
    [AST_OP_MODULO] = "%",   [AST_OP_CONCAT] = "||",
    [AST_OP_EQUAL] = "=",    [AST_OP_NOT_EQUAL] = "<>",
    [AST_OP_LESS] = "<",     [AST_OP_LESS_EQUAL] = "<=",
    [AST_OP_GREATER] = ">",  [AST_OP_GREATER_EQUAL] = ">=",
    [AST_OP_NEGATE] = "neg", [AST_OP_PLUS] = "pos",
    [AST_OP_LIKE] = "like",  [AST_OP_ILIKE] = "ilike",
};

static void print_name(struct buf *out, struct text qualifier, struct text name)
{
    if (qualifier.size > 0) buf_format(out, "%.*s.", TEXT_ARGS(qualifier));
    buf_put_text(out, name);
}

static void print_expr(struct buf *out, const struct ast_expr *expr);

static void print_args(struct buf *out, const char *head, const struct ast_expr *expr)
{
    buf_format(out, "(%s%s", expr->negated ? "not-" : "", head);
    if (expr->operand != NULL) {
        buf_put_string(out, " of ");
        print_expr(out, expr->operand);
    }
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        bool is_else = expr->has_else && i + 1 == expr->arg_count;
        buf_put_string(out, is_else ? " else " : " ");
        print_expr(out, expr->args[i]);
    }
    if (expr->kind == AST_CAST) {
        char name[TYPE_NAME_SIZE];
        buf_format(out, " %s", type_name(expr->type, name));
    }
    if (expr->window != NULL) {
        buf_put_string(out, " (over");
        for (uint32_t i = 0; i < expr->window->partition_count; i++) {
            buf_put_string(out, i == 0 ? " by " : " ");
            print_expr(out, expr->window->partition[i]);
        }
        print_order(out, expr->window->order, expr->window->order_count);
        buf_put_string(out, ")");
    }
    buf_put_string(out, ")");
}

static void print_leaf(struct buf *out, const struct ast_expr *expr)
{
    char name[TYPE_NAME_SIZE];
    switch (expr->kind) {
    case AST_STAR:
        print_name(out, expr->qualifier, TEXT_LITERAL("*"));
        break;
    case AST_NUMBER:
        buf_format(out, "#%.*s", TEXT_ARGS(expr->name));
        break;
    case AST_TEXT:
        buf_format(out, "'%.*s'", TEXT_ARGS(expr->name));
        break;
    case AST_NULL:
        buf_put_string(out, "NULL");
        break;
    case AST_BOOL:
        buf_put_string(out, expr->truth ? "TRUE" : "FALSE");
        break;
    case AST_TYPED:
        buf_format(out, "%s'%.*s'", type_name(expr->type, name), TEXT_ARGS(expr->name));
        break;
    case AST_PARAMETER:
        buf_format(out, "$%.*s", TEXT_ARGS(expr->name));
        break;
    default:
        assert_true(expr->kind == AST_COLUMN || expr->kind == AST_INT);
        print_name(out, expr->qualifier, expr->name);
    }
}

static void print_expr(struct buf *out, const struct ast_expr *expr)
{
    static const char *const heads[] = {
        [AST_AND] = "and",         [AST_OR] = "or",           [AST_NOT] = "not",
        [AST_IS_NULL] = "is-null", [AST_IN] = "in",           [AST_CASE] = "case",
        [AST_CAST] = "cast",       [AST_BETWEEN] = "between", [AST_INDEX] = "at",
    };
    char head[80];
    switch (expr->kind) {
    case AST_CALL:
        (void)snprintf(head, sizeof head, "%.*s!%s", TEXT_ARGS(expr->name),
                       expr->distinct ? " distinct" : "");
        print_args(out, head, expr);
        break;
    case AST_UNARY:
    case AST_BINARY:
    case AST_LIKE:
        print_args(out, operator_names[expr->op], expr);
        break;
    case AST_AND:
    case AST_OR:
    case AST_NOT:
    case AST_IS_NULL:
    case AST_IN:
    case AST_BETWEEN:
    case AST_CASE:
    case AST_CAST:
    case AST_INDEX:
        print_args(out, heads[expr->kind], expr);
        break;
    case AST_SUBQUERY:
        print_query(out, expr->query);
        break;
    default:
        print_leaf(out, expr);
    }
}

static void print_order(struct buf *out, const struct ast_order *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        buf_put_string(out, i == 0 ? " order " : " ");
        print_expr(out, order[i].expr);
        buf_format(out, "%s%s", order[i].descending ? "-desc" : "",
                   order[i].nulls_first ? "-first" : "");
    }
}

static void print_from(struct buf *out, const struct ast_from *from)
{
    switch (from->kind) {
    case AST_FROM_TABLE:
        buf_put_text(out, from->name);
        break;
    case AST_FROM_SUBQUERY:
        print_query(out, from->query);
        break;
    case AST_FROM_UNNEST:
        buf_put_string(out, "(unnest ");
        print_expr(out, from->expr);
        buf_put_string(out, ")");
        break;
    case AST_FROM_JOIN:
        buf_put_string(out, from->left_outer     ? "(left "
                            : from->expr != NULL ? "(join "
                                                 : "(cross ");
        print_from(out, from->left);
        buf_put_string(out, " ");
        print_from(out, from->right);
        if (from->expr != NULL) {
            buf_put_string(out, " on ");
            print_expr(out, from->expr);
        }
        buf_put_string(out, ")");
    }
    if (from->alias.size > 0) buf_format(out, ":%.*s", TEXT_ARGS(from->alias));
    if (from->column_alias.size > 0) buf_format(out, "(%.*s)", TEXT_ARGS(from->column_alias));
}

static void print_clause(struct buf *out, const char *word, const struct ast_expr *expr)
{
    if (expr == NULL) return;
    buf_format(out, " %s ", word);
    print_expr(out, expr);
}

static void print_select(struct buf *out, const struct ast_select *select)
{
    buf_put_string(out, select->distinct ? "select distinct" : "select");
    for (uint32_t i = 0; i < select->item_count; i++) {
        buf_put_string(out, " ");
        print_expr(out, select->items[i].expr);
        struct text alias = select->items[i].alias;
        if (alias.size > 0) buf_format(out, ":%.*s", TEXT_ARGS(alias));
    }
    if (select->from != NULL) {
        buf_put_string(out, " from ");
        print_from(out, select->from);
    }
    print_clause(out, "where", select->where);
    for (uint32_t i = 0; i < select->group_count; i++) {
        print_clause(out, i == 0 ? "group" : "", select->group[i]);
    }
    print_clause(out, "having", select->having);
    print_clause(out, "qualify", select->qualify);
}

static void print_query(struct buf *out, const struct ast_query *query)
{
    buf_put_string(out, "(");
    for (uint32_t i = 0; i < query->with_count; i++) {
        buf_format(out, "with %.*s ", TEXT_ARGS(query->withs[i].name));
        print_query(out, query->withs[i].query);
        buf_put_string(out, " ");
    }
    for (uint32_t i = 0; i < query->body_count; i++) {
        if (i > 0) buf_put_string(out, " union ");
        const struct ast_body *body = &query->bodies[i];
        assert_true((body->select == NULL) != (body->query == NULL));
        if (body->select != NULL) {
            print_select(out, body->select);
        } else {
            print_query(out, body->query);
        }
    }
    print_order(out, query->order, query->order_count);
    print_clause(out, "limit", query->limit);
    print_clause(out, "offset", query->limit_offset);
    buf_put_string(out, ")");
}

static void print_script(struct buf *out, const struct ast_script *script)
{
    char name[TYPE_NAME_SIZE];
    for (uint32_t i = 0; i < script->parameter_count; i++) {
        buf_format(out, "(parameter %.*s ", TEXT_ARGS(script->parameters[i].name));
        print_expr(out, script->parameters[i].value);
        buf_put_string(out, ")");
    }
    for (uint32_t i = 0; i < script->table_count; i++) {
        const struct ast_table *table = &script->tables[i];
        buf_format(out, "(table %.*s", TEXT_ARGS(table->name));
        for (uint32_t j = 0; j < table->column_count; j++) {
            const struct ast_column *column = &table->columns[j];
            buf_format(out, " %.*s:%s%s", TEXT_ARGS(column->name), type_name(column->type, name),
                       column->not_null ? "!" : "");
        }
        for (uint32_t j = 0; j < table->pattern_count; j++) {
            buf_format(out, " '%.*s'", TEXT_ARGS(table->patterns[j]));
        }
        buf_put_string(out, ")");
    }
    if (script->query != NULL) print_query(out, script->query);
}

/* --- running the parser --- */

struct parser_run {
    struct sql_source source;
    struct arena arena;
    struct ast_script *script;
    struct error err;
    status code;
};

static void run_init(struct parser_run *run, struct text text)
{
    *run = (struct parser_run){.source = {.text = text, .name = "t.sql"}};
    run->code = sql_parse(&run->source, &run->arena, &run->script, &run->err);
}

static void run_done(struct parser_run *run)
{
    arena_done(&run->arena);
}

static void check_tree(const char *sql, const char *expected)
{
    struct parser_run run;
    struct buf out = {0};
    run_init(&run, text_of(sql));
    if (run.code != STATUS_OK) print_error("%s\n", run.err.text);
    assert_int_equal(run.code, STATUS_OK);
    print_script(&out, run.script);
    buf_put_u8(&out, 0);
    assert_false(out.failed);
    assert_string_equal((const char *)out.bytes, expected);
    buf_done(&out);
    run_done(&run);
}

/* `place` is "line:column". */
static void check_error(const char *sql, const char *place, const char *message)
{
    struct parser_run run;
    char expected[ERROR_TEXT_SIZE];
    run_init(&run, text_of(sql));
    if (run.code == STATUS_OK) print_error("accepted: %s\n", sql);
    assert_int_equal(run.code, STATUS_SQL);
    assert_null(run.script);
    (void)snprintf(expected, sizeof expected, "t.sql:%s: %s", place, message);
    *strchr(run.err.text, '\n') = '\0';
    assert_string_equal(run.err.text, expected);
    run_done(&run);
}

/* --- what is accepted --- */

struct tree_case {
    const char *sql;
    const char *tree;
};

static void check_expressions(const struct tree_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char sql[512];
        char tree[512];
        (void)snprintf(sql, sizeof sql, "SELECT %s", cases[i].sql);
        (void)snprintf(tree, sizeof tree, "(select %s)", cases[i].tree);
        check_tree(sql, tree);
    }
}

static void expressions_become_trees(void **state)
{
    (void)state;
    static const struct tree_case cases[] = {
        {"1", "1"},
        {"1.5, .5, 1e3", "#1.5 #.5 #1e3"},
        {"'it''s', '', ''''", "'it's' '' '''"},
        {"NULL, true, False", "NULL TRUE FALSE"},
        {"$from_year", "$from_year"},
        {"a, m.a, \"a \"\"b\"\"\", m.\"x y\"", "a m.a a \"b\" m.x y"},
        {"DATE '2000-01-01', timestamp'2000-01-01 00:00:00'",
         "DATE'2000-01-01' TIMESTAMP'2000-01-01 00:00:00'"},
        {"date, timestamp, date(x), interval", "date timestamp (date! x) interval"},
        {"- 1, -a, - -1, +a, -(+1)", "(neg 1) (neg a) (neg (neg 1)) (pos a) (neg (pos 1))"},
        {"-a * b, -a::INT, -a[1], a * -b",
         "(* (neg a) b) (neg (cast a INT)) (neg (at a 1)) (* a (neg b))"},
        {"1 + 2 * 3 - 4", "(- (+ 1 (* 2 3)) 4)"},
        {"(1 + 2) * 3", "(* (+ 1 2) 3)"},
        {"a - b - c, a / b // c % d", "(- (- a b) c) (% (// (/ a b) c) d)"},
        {"a || b + c || d", "(|| (|| a (+ b c)) d)"},
        {"a = b, a == b, a <> b, a != b", "(= a b) (= a b) (<> a b) (<> a b)"},
        {"a < b, a <= b, a > b, a >= b", "(< a b) (<= a b) (> a b) (>= a b)"},
        {"a AND b AND c", "(and a b c)"},
        {"a OR b AND c OR NOT d AND e", "(or a (and b c) (and (not d) e))"},
        {"NOT NOT a", "(not (not a))"},
        {"NOT a = b", "(not (= a b))"},
        {"NOT a IS NULL", "(not (is-null a))"},
        {"a IS NULL, a IS NOT NULL", "(is-null a) (not-is-null a)"},
        {"a = b IS NULL", "(is-null (= a b))"},
        {"a IN (1), a NOT IN (1, b + 1, (2))", "(in a 1) (not-in a 1 (+ b 1) 2)"},
        {"a IN ((SELECT 1))", "(in a (select 1))"},
        {"a BETWEEN 1 AND 2 AND b", "(and (between a 1 2) b)"},
        {"a NOT BETWEEN b + 1 AND c || d", "(not-between a (+ b 1) (|| c d))"},
        {"NOT a BETWEEN 1 AND 2 OR b", "(or (not (between a 1 2)) b)"},
        {"a LIKE 'x%', a NOT ILIKE b || '%'", "(like a 'x%') (not-ilike a (|| b '%'))"},
        {"a = b LIKE c, a LIKE b = c", "(= a (like b c)) (= (like a b) c)"},
        {"CASE WHEN a THEN 1 END", "(case a 1)"},
        {"CASE WHEN a THEN 1 WHEN b THEN 2 ELSE 3 END", "(case a 1 b 2 else 3)"},
        {"case x when 1 then 'a' else null end", "(case of x 1 'a' else NULL)"},
        {"CAST(a AS INT), a::text, a::BIGINT::DOUBLE",
         "(cast a INT) (cast a TEXT) (cast (cast a INT) DOUBLE)"},
        {"a::DECIMAL, a::DECIMAL(5), a::NUMERIC(18,18), a::decimal(1, 0)",
         "(cast a DECIMAL(18,3)) (cast a DECIMAL(5,0)) (cast a DECIMAL(18,18)) "
         "(cast a DECIMAL(1,0))"},
        {"a::TEXT[], a::INT[][1], a::TEXT[1], a[1][2]",
         "(cast a TEXT[]) (at (cast a INT[]) 1) (at (cast a TEXT) 1) (at (at a 1) 2)"},
        {"a + b::INT", "(+ a (cast b INT))"},
        {"f(), f(a), f(a, b + 1, 'c')", "(f!) (f! a) (f! a (+ b 1) 'c')"},
        {"count(*), COUNT(DISTINCT a), left(a, 2), right(a, 2)",
         "(count! *) (COUNT! distinct a) (left! a 2) (right! a 2)"},
        {"EXTRACT(year FROM a), extract, cast", "(year! a) extract cast"},
        {"row_number() OVER ()", "(row_number! (over))"},
        {"rank() OVER (PARTITION BY a, b ORDER BY c DESC NULLS FIRST, d)",
         "(rank! (over by a b order c-desc-first d))"},
        {"sum(a) OVER (ORDER BY b) + 1", "(+ (sum! a (over order b)) 1)"},
        {"(SELECT 1)", "(select 1)"},
        {"((SELECT 1)) + 1", "(+ (select 1) 1)"},
        {"((SELECT 1) UNION ALL SELECT 2)", "((select 1) union select 2)"},
        {"((SELECT 1) ORDER BY 1 LIMIT 1)", "((select 1) order 1 limit 1)"},
        {"(WITH a AS (SELECT 1) SELECT * FROM a)", "(with a (select 1) select * from a)"},
        {"a /* b */ + -- c\n d", "(+ a d)"},
    };
    check_expressions(cases, sizeof cases / sizeof cases[0]);
}

static void queries_become_trees(void **state)
{
    (void)state;
    static const struct tree_case cases[] = {
        {"", ""},
        {" ; ; -- nothing", ""},
        {"SELECT 1;;", "(select 1)"},
        {"SELECT ALL a b, c AS d, e \"f g\", h AS end", "(select a:b c:d e:f g h:end)"},
        {"SELECT DISTINCT *, m.*, m.a FROM m", "(select distinct * m.* m.a from m)"},
        {"SELECT a FROM t, u v", "(select a from (cross t u:v))"},
        {"SELECT a FROM t AS x CROSS JOIN u", "(select a from (cross t:x u))"},
        {"SELECT a FROM t JOIN u ON t.a = u.a INNER JOIN v ON v.a = u.a AND v.b",
         "(select a from (join (join t u on (= t.a u.a)) v on (and (= v.a u.a) v.b)))"},
        {"SELECT a FROM t LEFT JOIN u ON a LEFT OUTER JOIN v ON b, w",
         "(select a from (cross (left (left t u on a) v on b) w))"},
        {"SELECT a FROM t x JOIN u USING (id)", "(select a from (join t:x u on (= x.id u.id)))"},
        {"SELECT a FROM t LEFT JOIN (SELECT 1 id) u USING (id, \"no\")",
         "(select a from (left t (select 1:id):u on (and (= t.id u.id) (= t.no u.no))))"},
        {"SELECT a FROM (SELECT b FROM t) AS s", "(select a from (select b from t):s)"},
        {"SELECT a FROM ((SELECT 1) UNION ALL (SELECT 2)) s",
         "(select a from ((select 1) union (select 2)):s)"},
        {"SELECT a FROM m, UNNEST(m.genres) AS g(name)",
         "(select a from (cross m (unnest m.genres):g(name)))"},
        {"SELECT a FROM m CROSS JOIN UNNEST(pluck(x, 'name')) g JOIN c ON c.id = m.id",
         "(select a from (join (cross m (unnest (pluck! x 'name')):g) c on (= c.id m.id)))"},
        {"SELECT a, count(*) FROM t WHERE b GROUP BY a, 2, c + 1 HAVING count(*) > 1 "
         "QUALIFY row_number() OVER (ORDER BY a) <= 3 ORDER BY 2 DESC, a ASC NULLS LAST "
         "LIMIT 5 OFFSET 2",
         "(select a (count! *) from t where b group a  2  (+ c 1) having (> (count! *) 1) "
         "qualify (<= (row_number! (over order a)) 3) order 2-desc a limit 5 offset 2)"},
        {"SELECT 1 OFFSET 2 LIMIT $n", "(select 1 limit $n offset 2)"},
        {"SELECT 1 UNION ALL SELECT 2 UNION ALL (SELECT 3 LIMIT 1) ORDER BY 1",
         "(select 1 union select 2 union (select 3 limit 1) order 1)"},
        {"(SELECT 1)", "((select 1))"},
        {"((SELECT 1) LIMIT 1) LIMIT 2;", "(((select 1) limit 1) limit 2)"},
        {"WITH a AS (SELECT 1), recursive AS (SELECT 2) SELECT * FROM a, recursive",
         "(with a (select 1) with recursive (select 2) select * from (cross a recursive))"},
        {"WITH recursive AS (SELECT 2) SELECT 1", "(with recursive (select 2) select 1)"},
        {"SELECT a FROM t WHERE x > (SELECT avg(x) FROM t)",
         "(select a from t where (> x (select (avg! x) from t)))"},
        {"SELECT date, year, name, type, id, count, key, value, first, last, table FROM filter",
         "(select date year name type id count key value first last table from filter)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_tree(cases[i].sql, cases[i].tree);
    }
}

static void statements_become_trees(void **state)
{
    (void)state;
    static const struct tree_case cases[] = {
        {"PARAMETER a = 1; PARAMETER b = -1.5; PARAMETER from = 'x'",
         "(parameter a 1)(parameter b (neg #1.5))(parameter from 'x')"},
        {"PARAMETER a = TRUE;PARAMETER b = DATE '2000-01-01';PARAMETER c = TIMESTAMP 'x';",
         "(parameter a TRUE)(parameter b DATE'2000-01-01')(parameter c TIMESTAMP'x')"},
        {"CREATE TABLE t (a INT) FROM 'a.csv'", "(table t a:INT 'a.csv')"},
        {"create table credits (cast TEXT NOT NULL, id INT not null, \"subreddit.id\" TEXT, "
         "amount DECIMAL(9,2), order BOOLEAN, l TEXT[], n INT[] NOT NULL) "
         "FROM 'a/*.csv' OR 'it''s*.csv' OR 'c';",
         "(table credits cast:TEXT! id:INT! subreddit.id:TEXT amount:DECIMAL(9,2) order:BOOL "
         "l:TEXT[] n:INT[]! 'a/*.csv' 'it's*.csv' 'c')"},
        {"PARAMETER y = 2000; CREATE TABLE t (a INT) FROM 'f'; PARAMETER z = 1; SELECT a FROM t",
         "(parameter y 2000)(parameter z 1)(table t a:INT 'f')(select a from t)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_tree(cases[i].sql, cases[i].tree);
    }
}

static void every_pair_of_operators_binds_as_the_table_says(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        const char *tree;
        int tier;
    } operators[] = {
        {"OR", "or", 1},     {"AND", "and", 2}, {"=", "=", 3},   {"<>", "<>", 3},
        {"<", "<", 3},       {"<=", "<=", 3},   {">", ">", 3},   {">=", ">=", 3},
        {"LIKE", "like", 4}, {"||", "||", 5},   {"+", "+", 6},   {"-", "-", 6},
        {"*", "*", 7},       {"/", "/", 7},     {"//", "//", 7}, {"%", "%", 7},
    };
    enum { COUNT = sizeof operators / sizeof operators[0] };
    for (int i = 0; i < COUNT; i++) {
        for (int j = 0; j < COUNT; j++) {
            char sql[64];
            char tree[64];
            const char *first = operators[i].tree;
            const char *second = operators[j].tree;
            (void)snprintf(sql, sizeof sql, "SELECT a %s b %s c", operators[i].sql,
                           operators[j].sql);
            int tier = operators[i].tier;
            if (tier == operators[j].tier && (tier == 3 || tier == 4)) {
                char place[32];
                (void)snprintf(place, sizeof place, "1:%zu",
                               strlen("SELECT a  b ") + strlen(operators[i].sql) + 1);
                check_error(sql, place,
                            "comparisons cannot be chained; write a < b AND b < c, or "
                            "parentheses");
                continue;
            }
            if (i == j && tier <= 2) {
                (void)snprintf(tree, sizeof tree, "(select (%s a b c))", first);
            } else if (tier >= operators[j].tier) {
                (void)snprintf(tree, sizeof tree, "(select (%s (%s a b) c))", second, first);
            } else {
                (void)snprintf(tree, sizeof tree, "(select (%s a (%s b c)))", first, second);
            }
            check_tree(sql, tree);
        }
    }
}

static void every_keyword_is_a_name_where_it_may_be(void **state)
{
    (void)state;
    for (int i = KEYWORD_NONE + 1; i < KEYWORD_COUNT; i++) {
        const char *name = keyword_name((enum keyword)i);
        char sql[160];
        char tree[160];
        (void)snprintf(sql, sizeof sql, "CREATE TABLE t (%s TEXT) FROM 'f'", name);
        (void)snprintf(tree, sizeof tree, "(table t %s:TEXT 'f')", name);
        check_tree(sql, tree);
        (void)snprintf(sql, sizeof sql, "SELECT \"%s\", t.\"%s\" FROM \"%s\" \"%s\"", name, name,
                       name, name);
        (void)snprintf(tree, sizeof tree, "(select %s t.%s from %s:%s)", name, name, name, name);
        check_tree(sql, tree);
        if (i == KEYWORD_FROM) continue;
        (void)snprintf(sql, sizeof sql, "SELECT t.%s, t.%s + 1 AS %s FROM t AS %s", name, name,
                       name, name);
        (void)snprintf(tree, sizeof tree, "(select t.%s (+ t.%s 1):%s from t:%s)", name, name, name,
                       name);
        check_tree(sql, tree);
        if (keyword_use((enum keyword)i) == KEYWORD_RESERVED) continue;
        (void)snprintf(sql, sizeof sql, "SELECT %s, a + %s FROM %s WHERE %s = 1 ORDER BY %s", name,
                       name, name, name, name);
        (void)snprintf(tree, sizeof tree, "(select %s (+ a %s) from %s where (= %s 1) order %s)",
                       name, name, name, name, name);
        check_tree(sql, tree);
        if (keyword_use((enum keyword)i) == KEYWORD_COLUMN) continue;
        (void)snprintf(sql, sizeof sql, "SELECT a %s FROM t %s", name, name);
        (void)snprintf(tree, sizeof tree, "(select a:%s from t:%s)", name, name);
        check_tree(sql, tree);
    }
}

static void nodes_know_the_text_they_cover(void **state)
{
    (void)state;
    static const char *const expressions[] = {
        "a",
        "m.a",
        "\"a b\"",
        "(a + b) * c",
        "-(a)",
        "f(a, (b))",
        "count(*)",
        "CASE WHEN (a) THEN b END",
        "(a)::INT",
        "l[(1)]",
        "CAST(a AS TEXT[])",
        "a IN (1, 2)",
        "$p",
        "DATE '2000'",
        "NOT (a)",
        "(a) AND (b) AND (c)",
        "'it''s'",
        "a IS NULL",
        "(SELECT 1)",
        "sum(a) OVER (ORDER BY b)",
        "m.*",
        "*",
        "a BETWEEN (1) AND (2)",
    };
    for (size_t i = 0; i < sizeof expressions / sizeof expressions[0]; i++) {
        char sql[128];
        struct parser_run run;
        (void)snprintf(sql, sizeof sql, "SELECT %s , b", expressions[i]);
        run_init(&run, text_of(sql));
        assert_int_equal(run.code, STATUS_OK);
        const struct ast_expr *expr = run.script->query->bodies[0].select->items[0].expr;
        assert_int_equal(expr->offset, strlen("SELECT "));
        assert_int_equal(expr->size, strlen(expressions[i]));
        run_done(&run);
    }
}

/* --- what is refused --- */

struct error_case {
    const char *sql;
    const char *place;
    const char *message;
};

static void check_errors(const struct error_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_error(cases[i].sql, cases[i].place, cases[i].message);
    }
}

static void mistakes_are_shown_with_what_was_expected(void **state)
{
    (void)state;
    static const struct error_case cases[] = {
        {"SELECT a FROM WHERE b", "1:15", "expected a table name after FROM, found `WHERE`"},
        {"SELECT a FROM", "1:14", "expected a table name after FROM, found the end of the text"},
        {"SELECT a\nFROM t\nWHERE  -- nothing\n", "3:6",
         "expected an expression after WHERE, found the end of the text"},
        {"SELECT a, FROM t", "1:11", "expected an expression after `,`, found `FROM`"},
        {"SELECT", "1:7", "expected an expression after SELECT, found the end of the text"},
        {"SELECT a AS FROM t", "1:13", "expected a name after AS, found `FROM`"},
        {"SELECT a +", "1:11", "expected an expression after `+`, found the end of the text"},
        {"SELECT (a", "1:10", "expected an operator or `)`, found the end of the text"},
        {"SELECT (SELECT a", "1:17", "expected `)` after the sub-query, found the end of the text"},
        {"SELECT a)", "1:9", "expected the end of the query, found `)`"},
        {"SELECT m. FROM m", "1:11", "expected a column name after `.`, found `FROM`"},
        {"SELECT m.1 FROM m", "1:9", "expected the end of the query, found `.1`"},
        {"SELECT a.b.c", "1:11", "a name has at most one qualifier: write table.column"},
        {"SELECT f(a", "1:11", "expected `,` or `)` in the call, found the end of the text"},
        {"SELECT f(a,)", "1:12", "expected an expression after `,`, found `)`"},
        {"SELECT sum(*)", "1:12", "only count takes `*`; name a column"},
        {"SELECT a * *", "1:12", "`*` stands alone in a select list, or in count(*)"},
        {"SELECT 1 + m.*", "1:14", "`*` stands alone in a select list, or in count(*)"},
        {"SELECT CASE a END", "1:15", "expected WHEN in CASE, found `END`"},
        {"SELECT CASE WHEN a END", "1:20", "expected THEN after WHEN's condition, found `END`"},
        {"SELECT CASE WHEN a THEN b", "1:26",
         "expected WHEN, ELSE or END of CASE, found the end of the text"},
        {"SELECT CASE WHEN a THEN b ELSE c", "1:33",
         "expected END of CASE, found the end of the text"},
        {"SELECT CAST(a)", "1:14", "expected AS and a type in CAST, found `)`"},
        {"SELECT CAST(a AS)", "1:17", "expected a type after AS, found `)`"},
        {"SELECT a::", "1:11", "expected a type after `::`, found the end of the text"},
        {"SELECT a::INTT", "1:11", "no type `INTT`; did you mean `INT`?"},
        {"SELECT a::zzzzzzzz", "1:11", "no type `zzzzzzzz`"},
        {"SELECT a::VARCHAR(20)", "1:18", "only DECIMAL takes digits: leave the parentheses out"},
        {"SELECT a::DECIMAL(0)", "1:19", "a DECIMAL has 1 to 18 digits"},
        {"SELECT a::DECIMAL(19)", "1:19", "a DECIMAL has 1 to 18 digits"},
        {"SELECT a::DECIMAL(999)", "1:19", "a DECIMAL has at most 18 digits"},
        {"SELECT a::DECIMAL(5,6)", "1:21", "a DECIMAL(5) has 0 to 5 digits behind the point"},
        {"SELECT a::DECIMAL(5", "1:20",
         "expected `)` after the digits of DECIMAL, found the end of the text"},
        {"SELECT a::DECIMAL(x)", "1:19", "expected a number after `(`, found `x`"},
        {"SELECT a::DOUBLE[]", "1:11", "lists are of TEXT or INT only"},
        {"SELECT a[1", "1:11", "expected `]` after the index, found the end of the text"},
        {"SELECT a IS b", "1:13", "expected NULL after IS, found `b`"},
        {"SELECT a IN 1", "1:13", "expected `(` after IN, found `1`"},
        {"SELECT a IN ()", "1:14", "expected an expression after `(`, found `)`"},
        {"SELECT a IN (1", "1:15",
         "expected `,` or `)` in the list of IN, found the end of the text"},
        {"SELECT a BETWEEN 1 OR 2", "1:20", "expected AND in BETWEEN, found `OR`"},
        {"SELECT a NOT b", "1:10", "expected the end of the query, found `NOT`"},
        {"SELECT a = NOT b", "1:12", "expected an expression after `=`, found `NOT`"},
        {"SELECT a FROM t GROUP a", "1:23", "expected BY after GROUP, found `a`"},
        {"SELECT a FROM t ORDER a", "1:23", "expected BY after ORDER, found `a`"},
        {"SELECT a ORDER BY a NULLS b", "1:27", "expected FIRST or LAST after NULLS, found `b`"},
        {"SELECT a FROM t LEFT u", "1:22", "expected JOIN after LEFT, found `u`"},
        {"SELECT a FROM t JOIN u", "1:23",
         "expected ON or USING after the joined table, found the end of the text"},
        {"SELECT a FROM t JOIN u USING id", "1:30", "expected `(` after USING, found `id`"},
        {"SELECT a FROM (SELECT 1)", "1:25",
         "expected a name for the sub-query, found the end of the text"},
        {"SELECT a FROM (WHERE", "1:16", "expected SELECT after `(`, found `WHERE`"},
        {"SELECT a FROM t, UNNEST(x)", "1:27",
         "expected a name for what UNNEST yields, found the end of the text"},
        {"SELECT a FROM t, UNNEST(x) u(a, b)", "1:31",
         "expected `)` after the one column of UNNEST, found `,`"},
        {"WITH a (SELECT 1) SELECT 1", "1:8", "expected AS after `a`, found `(`"},
        {"WITH a AS (SELECT 1) FROM a", "1:22", "expected SELECT, found `FROM`"},
        {"SELECT 1 LIMIT", "1:15", "expected an expression after LIMIT, found the end of the text"},
        {"SELECT 1 LIMIT 1 LIMIT 2", "1:18", "expected the end of the query, found `LIMIT`"},
        {"SELECT a OVER (b)", "1:10", "expected the end of the query, found `OVER`"},
        {"SELECT f() OVER (a)", "1:18",
         "expected PARTITION BY, ORDER BY or `)` in OVER, found `a`"},
        {"SELECT 1; SELECT 2", "1:11", "the query must be the last statement of its file"},
        {"SELECT 1; PARAMETER a = 1", "1:11", "the query must be the last statement of its file"},
        {"a", "1:1", "expected SELECT, WITH, CREATE TABLE or PARAMETER, found `a`"},
        {"'abc'", "1:1", "expected SELECT, WITH, CREATE TABLE or PARAMETER, found `'abc'`"},
        {"SELECT 'a' 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", "1:12",
         "expected the end of the query, found `'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…`"},
        {"PARAMETER = 1", "1:11", "expected a name after PARAMETER, found `=`"},
        {"PARAMETER a 1", "1:13", "expected `=` and a value after the parameter's name, found `1`"},
        {"PARAMETER a = b", "1:15",
         "expected a number, '…', TRUE, FALSE, DATE '…' or TIMESTAMP '…' after `=`, found `b`"},
        {"PARAMETER a = NULL", "1:15",
         "expected a number, '…', TRUE, FALSE, DATE '…' or TIMESTAMP '…' after `=`, found `NULL`"},
        {"PARAMETER a = -'1'", "1:16", "expected a number after `-`, found `'1'`"},
        {"PARAMETER a = 1 SELECT 1", "1:17", "expected `;` after the statement, found `SELECT`"},
        {"PARAMETER a = 1; PARAMETER A = 2", "1:28", "parameter `A` is already there"},
        {"CREATE TABLE t (a INT) FROM 'f'; CREATE TABLE T (a INT) FROM 'f'", "1:47",
         "table `T` is already there"},
        {"CREATE", "1:7", "expected TABLE after CREATE, found the end of the text"},
        {"CREATE TABLE (a INT)", "1:14", "expected a table name after TABLE, found `(`"},
        {"CREATE TABLE t a", "1:16", "expected `(` and columns after the table's name, found `a`"},
        {"CREATE TABLE t ()", "1:17", "expected a column name after `(`, found `)`"},
        {"CREATE TABLE t (a)", "1:18", "expected a type after `a`, found `)`"},
        {"CREATE TABLE t (a INT PRIMARY KEY)", "1:23",
         "expected NOT NULL, `,` or `)` after the column, found `PRIMARY`"},
        {"CREATE TABLE t (a INT NOT 1)", "1:27", "expected NULL after NOT, found `1`"},
        {"CREATE TABLE t (a INT);", "1:23",
         "expected FROM 'file.csv' after the columns, found `;`"},
        {"CREATE TABLE t (a INT) FROM f", "1:29",
         "expected a file name in '…' after FROM, found `f`"},
        {"CREATE TABLE t (a INT) FROM 'f' OR", "1:35",
         "expected a file name in '…' after OR, found the end of the text"},
    };
    check_errors(cases, sizeof cases / sizeof cases[0]);
}

static void bad_tokens_are_reported_where_they_stand(void **state)
{
    (void)state;
    static const struct error_case cases[] = {
        {"SELECT 'abc", "1:8", "this text has no closing '"},
        {"SELECT a \"abc", "1:10", "this name has no closing \""},
        {"SELECT \"\"", "1:8", "a name cannot be empty"},
        {"SELECT 1 /* abc", "1:10", "this comment has no closing */"},
        {"SELECT 1_000", "1:8", "digits are not separated by `_`; write 1000 for 1_000"},
        {"SELECT 1 + 2abc", "1:12", "a number cannot be followed by letters"},
        {"SELECT 1.", "1:8", "a digit must follow the decimal point"},
        {"SELECT E'a'", "1:8",
         "a string has no letter in front; write '…' with '' for a quote in it"},
        {"SELECT a ~ b", "1:10", "unexpected character `~`"},
        {"SELECT a FROM t WHERE a = ?", "1:27", "unexpected character `?`"},
        {"SELECT $1", "1:8", "a parameter has a name: write $name"},
        {"SELECT a | b", "1:10", "unexpected character `|`"},
        {"SELECT a FROM t wehre ~", "1:23", "unexpected character `~`"},
        {"SELECT \x01", "1:8", "unexpected character `?`"},
        {"SELEC 1_0", "1:1",
         "expected SELECT, WITH, CREATE TABLE or PARAMETER, found `SELEC`; did you mean `SELECT`?"},
    };
    check_errors(cases, sizeof cases / sizeof cases[0]);
}

static void misspelled_keywords_get_a_suggestion(void **state)
{
    (void)state;
    static const struct error_case cases[] = {
        {"SELCT a", "1:1",
         "expected SELECT, WITH, CREATE TABLE or PARAMETER, found `SELCT`; did you mean `SELECT`?"},
        {"WIHT a AS (SELECT 1) SELECT 1", "1:1",
         "expected SELECT, WITH, CREATE TABLE or PARAMETER, found `WIHT`; did you mean `WITH`?"},
        {"CRAETE TABLE t", "1:1",
         "expected SELECT, WITH, CREATE TABLE or PARAMETER, found `CRAETE`; did you mean "
         "`CREATE`?"},
        {"PARAMTER a = 1", "1:1",
         "expected SELECT, WITH, CREATE TABLE or PARAMETER, found `PARAMTER`; did you mean "
         "`PARAMETER`?"},
        {"WITH a AS (SELECT 1) SLECT a", "1:22",
         "expected SELECT, found `SLECT`; did you mean `SELECT`?"},
        {"SELECT a FORM t", "1:10",
         "expected the end of the query, found `FORM`; did you mean `FROM`?"},
        {"SELECT a FROM movies WEHRE a = 1", "1:22",
         "expected the end of the query, found `WEHRE`; did you mean `WHERE`?"},
        {"SELECT a FROM movies m WEHRE a = 1", "1:24",
         "expected the end of the query, found `WEHRE`; did you mean `WHERE`?"},
        {"SELECT (SELECT a FROM t ORDR BY a)", "1:25",
         "expected `)` after the sub-query, found `ORDR`; did you mean `ORDER`?"},
        {"SELECT a FROM t WHERE a LIMT 5", "1:25",
         "expected the end of the query, found `LIMT`; did you mean `LIMIT`?"},
        {"SELECT a FROM t x y", "1:19", "expected the end of the query, found `y`"},
    };
    check_errors(cases, sizeof cases / sizeof cases[0]);
}

static void what_is_not_supported_is_refused_with_advice(void **state)
{
    (void)state;
    static const struct error_case cases[] = {
        {"SELECT 1 UNION SELECT 2", "1:10",
         "UNION without ALL is not supported; write SELECT DISTINCT * FROM (… UNION ALL …) AS u"},
        {"SELECT 1 LIMIT 1 UNION ALL SELECT 2", "1:18",
         "ORDER BY and LIMIT stand behind the last UNION ALL; put parentheses around a query that "
         "has its own"},
        {"SELECT 1 INTERSECT SELECT 2", "1:10",
         "INTERSECT is not supported; write SELECT DISTINCT with a JOIN on all columns"},
        {"SELECT 1 EXCEPT SELECT 2", "1:10",
         "EXCEPT is not supported; write LEFT JOIN … WHERE the other side's column IS NULL"},
        {"SELECT a FROM t RIGHT JOIN u ON b", "1:17",
         "RIGHT JOIN is not supported; swap the tables and write LEFT JOIN"},
        {"SELECT a FROM t x FULL OUTER JOIN u ON b", "1:19",
         "FULL JOIN is not supported; write LEFT JOIN, and add the other side's unmatched rows "
         "with "
         "UNION ALL"},
        {"SELECT a FROM t NATURAL JOIN u", "1:17",
         "NATURAL JOIN is not supported; write JOIN … USING (column)"},
        {"SELECT a FROM t SEMI JOIN u ON b", "1:17",
         "SEMI JOIN is not supported; write JOIN with a sub-query that is SELECT DISTINCT"},
        {"SELECT a FROM t ANTI JOIN u ON b", "1:17",
         "ANTI JOIN is not supported; write LEFT JOIN … WHERE the other side's column IS NULL"},
        {"SELECT a FROM t LEFT ANTI JOIN u ON b", "1:22",
         "ANTI JOIN is not supported; write LEFT JOIN … WHERE the other side's column IS NULL"},
        {"SELECT a FROM t ASOF JOIN u ON b", "1:17",
         "ASOF JOIN is not supported; write JOIN … ON with equalities"},
        {"SELECT a FROM t JOIN u ON b JOIN v USING (id)", "1:36",
         "USING joins two tables only; write ON a.column = b.column for further ones"},
        {"SELECT a FROM t, LATERAL (SELECT 1) s", "1:18",
         "LATERAL is not supported; write JOIN … ON; for lists, UNNEST(list) AS name"},
        {"SELECT a FROM (VALUES (1)) v", "1:16",
         "VALUES is not supported; write SELECT … UNION ALL SELECT …"},
        {"VALUES (1)", "1:1", "VALUES is not supported; write SELECT … UNION ALL SELECT …"},
        {"SELECT a FROM (t JOIN u ON b)", "1:16",
         "joins in parentheses are not supported; write them one after the other"},
        {"SELECT a FROM 'f.csv'", "1:15",
         "a file is named once, in CREATE TABLE name (…) FROM 'file.csv'; use that name"},
        {"SELECT a FROM read_csv('f.csv')", "1:15",
         "a file is named once, in CREATE TABLE name (…) FROM 'file.csv'; use that name"},
        {"SELECT a FROM t AS u(b)", "1:21",
         "a table's columns are not renamed here; write SELECT column AS name"},
        {"SELECT a FROM t WINDOW w AS ()", "1:17",
         "WINDOW is not supported; write the window where it is used: OVER (PARTITION BY … ORDER "
         "BY …)"},
        {"SELECT a FROM t FETCH FIRST 1 ROW ONLY", "1:17", "FETCH is not supported; write LIMIT"},
        {"SELECT a FROM t TABLESAMPLE 10", "1:17",
         "TABLESAMPLE is not supported; write WHERE with a condition on a column"},
        {"SELECT f() OVER w", "1:17",
         "named windows are not supported; write OVER (PARTITION BY … ORDER BY …)"},
        {"SELECT sum(a) OVER (ORDER BY b ROWS 1 PRECEDING)", "1:32",
         "window frames are not supported; leave out what follows ORDER BY"},
        {"SELECT sum(a) OVER (RANGE 1 PRECEDING)", "1:21",
         "window frames are not supported; leave out what follows ORDER BY"},
        {"SELECT sum(a) OVER (GROUPS 1 PRECEDING)", "1:21",
         "window frames are not supported; leave out what follows ORDER BY"},
        {"SELECT sum(a) FILTER (WHERE b)", "1:15",
         "FILTER is not supported; aggregate CASE WHEN condition THEN x END"},
        {"SELECT list(a ORDER BY b)", "1:15",
         "ORDER BY in a call is not supported; use arg_min or arg_max, or a sub-query"},
        {"SELECT a IN (SELECT b FROM t)", "1:14",
         "IN (SELECT …) is not supported; write JOIN (SELECT DISTINCT …) AS s ON …"},
        {"SELECT a WHERE NOT EXISTS (SELECT 1)", "1:20",
         "EXISTS is not supported; write JOIN (SELECT DISTINCT …) AS s ON …"},
        {"SELECT TRY_CAST(a AS INT)", "1:8", "TRY_CAST is not supported; write CAST(x AS type)"},
        {"SELECT a + INTERVAL '1 day'", "1:12",
         "INTERVAL is not supported; compare with DATE '…' or year(x)"},
        {"SELECT INTERVAL 1 day", "1:8",
         "INTERVAL is not supported; compare with DATE '…' or year(x)"},
        {"SELECT unnest(a)", "1:8", "UNNEST stands in FROM; write FROM t, UNNEST(t.list) AS name"},
        {"SELECT a IS DISTINCT FROM b", "1:13",
         "IS DISTINCT FROM is not supported; write <> and say with IS NULL what NULLs do"},
        {"SELECT a IS NOT TRUE", "1:17",
         "IS TRUE and IS FALSE are not supported; write the condition, or NOT and it"},
        {"SELECT a SIMILAR TO b", "1:10",
         "SIMILAR TO is not supported; write regexp_matches(x, '…')"},
        {"SELECT a LIKE b ESCAPE 'c'", "1:17",
         "ESCAPE is not supported; write contains(x, '…') or regexp_matches(x, '…')"},
        {"SELECT DISTINCT ON (a) b FROM t", "1:17",
         "DISTINCT ON is not supported; write QUALIFY row_number() OVER (PARTITION BY … ORDER BY "
         "…) = 1"},
        {"SELECT a GROUP BY ALL", "1:19", "GROUP BY ALL is not supported; name the columns"},
        {"SELECT a ORDER BY ALL", "1:19", "ORDER BY ALL is not supported; name the columns"},
        {"SELECT a GROUP BY GROUPING SETS (a)", "1:19",
         "GROUPING SETS is not supported; write a query for each grouping and UNION ALL"},
        {"SELECT a GROUP BY ROLLUP (a)", "1:19",
         "ROLLUP is not supported; write a query for each grouping and UNION ALL"},
        {"SELECT a GROUP BY cube(a)", "1:19",
         "CUBE is not supported; write a query for each grouping and UNION ALL"},
        {"WITH RECURSIVE a AS (SELECT 1) SELECT 1", "1:6",
         "WITH RECURSIVE is not supported; write a JOIN for each step"},
        {"INSERT INTO t VALUES (1)", "1:1",
         "INSERT is not supported; data stays in its files: write CREATE TABLE name (…) FROM "
         "'file.csv'"},
        {"update t set a = 1", "1:1",
         "UPDATE is not supported; data stays in its files: compute the new value in a SELECT"},
        {"DELETE FROM t", "1:1",
         "DELETE is not supported; data stays in its files: leave rows out with WHERE"},
        {"DROP TABLE t", "1:1",
         "DROP is not supported; a table lives only as long as its file of SQL: leave its CREATE "
         "TABLE out"},
        {"ALTER TABLE t", "1:1", "ALTER is not supported; change the table's CREATE TABLE"},
        {"EXPLAIN SELECT 1", "1:1", "EXPLAIN is not supported; use the command `millrace explain`"},
        {"CREATE VIEW v AS SELECT 1", "1:1",
         "only CREATE TABLE name (…) FROM 'file.csv' is supported; for a view, write WITH name AS "
         "(SELECT …) in the query"},
        {"CREATE OR REPLACE TABLE t (a INT) FROM 'f'", "1:1",
         "only CREATE TABLE name (…) FROM 'file.csv' is supported; for a view, write WITH name AS "
         "(SELECT …) in the query"},
        {"CREATE TABLE t AS SELECT 1", "1:16",
         "CREATE TABLE … AS is not supported; write WITH name AS (SELECT …) in the query"},
    };
    check_errors(cases, sizeof cases / sizeof cases[0]);
}

/* --- bounds --- */

/* head, then `unit` and later `close` `count` times around `core`. */
struct bad_pattern {
    const char *head;
    const char *unit;
    const char *core;
    const char *close;
};

static void put_repeated(struct buf *out, const char *unit, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        buf_put_string(out, unit);
    }
}

static status parse_pattern(const struct bad_pattern *pattern, uint32_t count, char *message,
                            size_t message_size)
{
    struct buf sql = {0};
    struct parser_run run;
    buf_put_string(&sql, pattern->head);
    put_repeated(&sql, pattern->unit, count);
    buf_put_string(&sql, pattern->core);
    put_repeated(&sql, pattern->close, count);
    assert_false(sql.failed);
    run_init(&run, (struct text){(const char *)sql.bytes, (uint32_t)sql.size});
    (void)snprintf(message, message_size, "%s", run.code == STATUS_OK ? "" : run.err.text);
    run_done(&run);
    buf_done(&sql);
    return run.code;
}

static void nesting_ends_at_two_hundred_levels(void **state)
{
    (void)state;
    static const struct bad_pattern patterns[] = {
        {"SELECT ", "(", "1", ")"},
        {"SELECT ", "- ", "1", ""},
        {"SELECT ", "NOT ", "a", ""},
        {"SELECT ", "f(", "a", ")"},
        {"SELECT ", "CAST(", "a", " AS INT)"},
        {"SELECT ", "CASE WHEN ", "a", " THEN 1 END"},
        {"SELECT ", "CASE ", "a", " WHEN 1 THEN 1 END"},
        {"SELECT ", "a IN (", "a", ")"},
        {"SELECT ", "a[", "1", "]"},
        {"SELECT a", "", "", "::INT"},
        {"SELECT a", "", "", "[1]"},
        {"SELECT a", "", "", " + 1"},
        {"SELECT a", "", "", " || b"},
        {"SELECT a", "", "", " * b"},
        {"SELECT ", "(SELECT ", "1", ")"},
        {"", "(", "SELECT 1", ")"},
        {"SELECT 1 FROM ", "(SELECT 1 FROM ", "t", ") s"},
        {"", "WITH a AS (", "SELECT 1", ") SELECT 1"},
        {"SELECT 1 FROM t", "", "", " CROSS JOIN t"},
        {"SELECT 1 FROM t", "", "", ", t"},
        {"SELECT 1 FROM t", "", "", " JOIN t ON a"},
        {"SELECT ", "(", "a", " + 1)"},
        {"SELECT ", "(1 + ", "a", ")"},
        {"SELECT ", "EXTRACT(year FROM ", "a", ")"},
        {"SELECT ", "f() OVER (ORDER BY ", "a", ")"},
        {"SELECT 1 LIMIT ", "(", "1", ")"},
        {"SELECT 1 ORDER BY ", "(", "1", ")"},
    };
    const char *expected = ": nested too deeply (at most 200 levels)\n";
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        char message[ERROR_TEXT_SIZE];
        assert_int_equal(parse_pattern(&patterns[i], 195, message, sizeof message), STATUS_OK);
        static const uint32_t counts[] = {202, 1000, 10000, 100000};
        for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++) {
            assert_int_equal(parse_pattern(&patterns[i], counts[j], message, sizeof message),
                             STATUS_SQL);
            assert_non_null(strstr(message, expected));
        }
    }
}

static void the_first_level_too_many_is_marked(void **state)
{
    (void)state;
    static const struct bad_pattern parentheses = {"SELECT ", "(", "1", ")"};
    static const struct bad_pattern sum = {"SELECT 1", "", "", "+1"};
    char message[ERROR_TEXT_SIZE];
    assert_int_equal(parse_pattern(&parentheses, 200, message, sizeof message), STATUS_OK);
    assert_int_equal(parse_pattern(&parentheses, 201, message, sizeof message), STATUS_SQL);
    assert_memory_equal(message, "t.sql:1:208: nested", strlen("t.sql:1:208: nested"));
    assert_int_equal(parse_pattern(&sum, 200, message, sizeof message), STATUS_OK);
    assert_int_equal(parse_pattern(&sum, 201, message, sizeof message), STATUS_SQL);
    assert_memory_equal(message, "t.sql:1:410: nested", strlen("t.sql:1:410: nested"));
}

/* Chains inside chains: neither the nesting nor any one chain is long, but the tree would be. */
static void height_adds_up_over_nested_chains(void **state)
{
    (void)state;
    static const struct bad_pattern chains[] = {
        {"SELECT ", "(", "1", "+1+1+1+1+1+1+1+1+1+1)"},
        {"SELECT ", "(SELECT (", "1", "+1+1+1+1+1)+1+1+1+1+1)"},
        {"SELECT 1 FROM ", "(SELECT 1 FROM ", "t", ",t,t,t,t,t,t,t,t) s"},
        {"", "WITH a AS (", "SELECT 1", ") SELECT 1+1+1+1+1+1"},
    };
    char message[ERROR_TEXT_SIZE];
    for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++) {
        assert_int_equal(parse_pattern(&chains[i], 15, message, sizeof message), STATUS_OK);
        bool grows = i != 3; /* Chains beside the nesting, not around it. */
        assert_int_equal(parse_pattern(&chains[i], 30, message, sizeof message),
                         grows ? STATUS_SQL : STATUS_OK);
    }
}

static void flat_lists_may_be_long(void **state)
{
    (void)state;
    static const struct bad_pattern lists[] = {
        {"SELECT a", "", "", " AND a"},
        {"SELECT a", "", "", " OR b"},
        {"SELECT a", "", "", " AND a OR b"},
        {"SELECT a", "", "", ", a"},
        {"SELECT a IN (1", ", 1", ")", ""},
        {"SELECT f(1", ", 1", ")", ""},
        {"SELECT CASE", " WHEN a THEN b", " END", ""},
        {"SELECT 1", "", "", " UNION ALL SELECT 1"},
        {"SELECT a FROM t GROUP BY a", "", "", ",a"},
        {"SELECT a FROM t ORDER BY a", "", "", ",a"},
        {"CREATE TABLE t (a INT", ", a INT", ") FROM 'f'", ""},
        {"CREATE TABLE t (a INT) FROM 'f'", "", "", " OR 'f'"},
        {"", ";", "", ""},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        char message[ERROR_TEXT_SIZE];
        assert_int_equal(parse_pattern(&lists[i], 100000, message, sizeof message), STATUS_OK);
    }
}

static void chains_keep_their_elements_in_order(void **state)
{
    (void)state;
    struct buf sql = {0};
    struct parser_run run;
    enum { COUNT = 100000 };
    buf_put_string(&sql, "SELECT 0");
    for (int i = 1; i < COUNT; i++) {
        buf_format(&sql, " AND %d", i);
    }
    assert_false(sql.failed);
    run_init(&run, (struct text){(const char *)sql.bytes, (uint32_t)sql.size});
    assert_int_equal(run.code, STATUS_OK);
    const struct ast_expr *chain = run.script->query->bodies[0].select->items[0].expr;
    assert_int_equal(chain->kind, AST_AND);
    assert_int_equal(chain->arg_count, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        char digits[16];
        (void)snprintf(digits, sizeof digits, "%u", (unsigned)i);
        assert_true(text_equal(chain->args[i]->name, text_of(digits)));
    }
    run_done(&run);
    buf_done(&sql);
}

static void texts_and_files_have_a_largest_size(void **state)
{
    (void)state;
    struct buf sql = {0};
    struct parser_run run;
    buf_put_string(&sql, "SELECT 1");
    put_repeated(&sql, " ", SQL_SOURCE_BYTES_MAX - (uint32_t)sql.size);
    run_init(&run, (struct text){(const char *)sql.bytes, (uint32_t)sql.size});
    assert_int_equal(run.code, STATUS_OK);
    run_done(&run);
    buf_put_string(&sql, " ");
    run_init(&run, (struct text){(const char *)sql.bytes, (uint32_t)sql.size});
    assert_int_equal(run.code, STATUS_SQL);
    assert_non_null(
        strstr(run.err.text, "1:1: the text is too long: 4194305 bytes (at most 4194304)"));
    run_done(&run);

    for (int what = 0; what < 2; what++) {
        for (int extra = 0; extra < 2; extra++) {
            buf_reset(&sql);
            for (int i = 0; i < SQL_STATEMENTS_MAX + extra; i++) {
                buf_format(&sql,
                           what == 0 ? "PARAMETER p%d = 1;" : "CREATE TABLE p%d (a INT) FROM 'f';",
                           i);
            }
            run_init(&run, (struct text){(const char *)sql.bytes, (uint32_t)sql.size});
            assert_int_equal(run.code, extra == 0 ? STATUS_OK : STATUS_SQL);
            if (extra == 1) assert_non_null(strstr(run.err.text, "(at most 1000)"));
            run_done(&run);
        }
    }
    buf_done(&sql);
}

/* --- harm --- */

static const char everything[] =
    "-- every feature\n"
    "PARAMETER from_year = -2000; PARAMETER day = DATE '2000-01-01';\n"
    "CREATE TABLE movies (id INT NOT NULL, \"ti\"\"tle\" TEXT, genres TEXT[], money DECIMAL(9,2))\n"
    "FROM 'movies*.csv' OR 'it''s.csv';\n"
    "WITH a AS (SELECT DISTINCT id, m.* FROM movies m), b AS ((SELECT 1) UNION ALL SELECT 2)\n"
    "SELECT *, a.*, CAST(x AS INT) AS y, x::DECIMAL(5)[1], count(*), count(DISTINCT z) c,\n"
    " CASE WHEN a THEN 1 ELSE 2 END, CASE x WHEN 1 THEN 'it''s' END, EXTRACT(year FROM d),\n"
    " sum(x) OVER (PARTITION BY a, b ORDER BY c DESC NULLS FIRST), /* why */ (SELECT max(id) FROM "
    "a)\n"
    "FROM a JOIN b USING (id, k) LEFT OUTER JOIN (SELECT 1.5 AS q UNION ALL SELECT .5) s ON s.q = "
    "a.q\n"
    " CROSS JOIN UNNEST(a.genres) AS g(genre), b AS b2\n"
    "WHERE NOT a IS NOT NULL AND b NOT IN (1, $from_year) OR c BETWEEN -1 AND +2 AND d ILIKE 'x%'\n"
    " AND t >= TIMESTAMP '2000-01-01 00:00:00' AND e = TRUE AND f || 'a' <> NULL\n"
    "GROUP BY 1, a.x % 2 HAVING count(*) // 2 > 1e3 QUALIFY row_number() OVER () <= 3\n"
    "ORDER BY 1 ASC NULLS LAST, ((SELECT 2) UNION ALL (SELECT 3) LIMIT 1) LIMIT 10 OFFSET 5;\n";

/* Parses a copy that ends where its memory does, so that a sanitizer sees a byte too many. */
static status parse_copy(struct text text)
{
    char *copy = memory_alloc(NULL, (size_t)text.size + 1);
    struct parser_run run;
    assert_non_null(copy);
    char *start = copy + 1; /* The end of the text is the end of the block. */
    if (text.size > 0) memcpy(start, text.bytes, text.size);
    run_init(&run, (struct text){start, text.size});
    if (run.code == STATUS_OK) {
        struct buf out = {0};
        print_script(&out, run.script);
        buf_done(&out);
    }
    run_done(&run);
    memory_free(NULL, copy, (size_t)text.size + 1);
    return run.code;
}

static void a_script_cut_anywhere_is_an_error_or_a_script(void **state)
{
    (void)state;
    assert_int_equal(parse_copy(TEXT_LITERAL(everything)), STATUS_OK);
    for (uint32_t size = 0; size < sizeof everything; size++) {
        status code = parse_copy((struct text){everything, size});
        assert_true(code == STATUS_OK || code == STATUS_SQL);
    }
}

static void a_script_without_any_one_token_does_no_harm(void **state)
{
    (void)state;
    struct lexer lexer;
    lexer_init(&lexer, TEXT_LITERAL(everything));
    for (;;) {
        struct token token = lexer_next(&lexer);
        if (token.kind == TOKEN_END) break;
        char sql[sizeof everything];
        memcpy(sql, everything, sizeof sql);
        memset(sql + token.offset, ' ', token.size);
        status code = parse_copy((struct text){sql, sizeof sql - 1});
        assert_true(code == STATUS_OK || code == STATUS_SQL);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct sql_source source = {.text = TEXT_LITERAL(everything), .name = "t.sql"};
    size_t refused_count = 0;
    for (size_t count = 0;; count++) {
        struct arena arena;
        struct ast_script *script = NULL;
        struct error err;
        arena_init(&arena, NULL);
        memory_fail_after(count);
        status code = sql_parse(&source, &arena, &script, &err);
        bool refused = memory_was_refused();
        memory_fail_never();
        arena_done(&arena);
        assert_int_equal(code, refused ? STATUS_MEMORY : STATUS_OK);
        if (!refused) break;
        assert_null(script);
        assert_non_null(strstr(err.text, "t.sql"));
        refused_count++;
    }
    assert_true(refused_count >= 2);
}

/* The arena takes few blocks, so its first one is given in all sizes: then every single request is
 * once the one that needs another block. */
static void every_request_of_the_arena_may_fail(void **state)
{
    (void)state;
    struct sql_source source = {.text = TEXT_LITERAL(everything), .name = "t.sql"};
    for (size_t used = 0;; used += 8) {
        struct arena arena;
        struct ast_script *script = NULL;
        struct error err;
        arena_init(&arena, NULL);
        assert_non_null(arena_alloc(&arena, 1 << 16, 8));
        size_t left = (size_t)(arena.end - arena.next);
        assert_true(left < 64);
        arena_reset(&arena);
        assert_non_null(arena_alloc(&arena, (1 << 16) - used, 8));
        memory_fail_after(0);
        status code = sql_parse(&source, &arena, &script, &err);
        memory_fail_never();
        arena_done(&arena);
        if (code == STATUS_OK) break;
        assert_int_equal(code, STATUS_MEMORY);
        assert_null(script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_become_trees),
        cmocka_unit_test(queries_become_trees),
        cmocka_unit_test(statements_become_trees),
        cmocka_unit_test(every_pair_of_operators_binds_as_the_table_says),
        cmocka_unit_test(every_keyword_is_a_name_where_it_may_be),
        cmocka_unit_test(nodes_know_the_text_they_cover),
        cmocka_unit_test(mistakes_are_shown_with_what_was_expected),
        cmocka_unit_test(bad_tokens_are_reported_where_they_stand),
        cmocka_unit_test(misspelled_keywords_get_a_suggestion),
        cmocka_unit_test(what_is_not_supported_is_refused_with_advice),
        cmocka_unit_test(nesting_ends_at_two_hundred_levels),
        cmocka_unit_test(the_first_level_too_many_is_marked),
        cmocka_unit_test(height_adds_up_over_nested_chains),
        cmocka_unit_test(flat_lists_may_be_long),
        cmocka_unit_test(chains_keep_their_elements_in_order),
        cmocka_unit_test(texts_and_files_have_a_largest_size),
        cmocka_unit_test(a_script_cut_anywhere_is_an_error_or_a_script),
        cmocka_unit_test(a_script_without_any_one_token_does_no_harm),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_request_of_the_arena_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
