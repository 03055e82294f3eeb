#include "support/check.h"
static void nothing(void **state) { (void)state; }
DGM_TEST_MAIN(dgm_test(nothing))
