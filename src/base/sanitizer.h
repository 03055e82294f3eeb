/* base/sanitizer.h - marks memory that must not be accessed, for AddressSanitizer. Without it the macros do nothing. */
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define DGM_HAVE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DGM_HAVE_ASAN 1
#endif
#endif

#ifdef DGM_HAVE_ASAN
#include <sanitizer/asan_interface.h>
#define DGM_POISON(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define DGM_UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
#define DGM_HAVE_ASAN 0
#define DGM_POISON(p, n) ((void)(p), (void)(n))
#define DGM_UNPOISON(p, n) ((void)(p), (void)(n))
#endif
