/* The header that was installed with the library. */
#include <akunu/akunu.h>
