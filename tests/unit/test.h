/* test.h - what every unit test needs: cmocka with the headers it expects before it. */
#ifndef UNIT_TEST_H
#define UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
