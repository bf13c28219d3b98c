/* geryon.h - what the author of a program can say to Geryon about the order of its threads.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Geryon repeats the order of locks, of atomic instructions, and of the loads that its planner knows to decide. Where threads meet
 * in another way the program can say so. All of this is in this file: there is no library to link, and outside Geryon nothing of it
 * has an effect (a mark is a nop; a region, a look at a flag). C11 and C++11 and later, GCC or Clang, x86-64. With
 * -DGERYON_OFF nothing is left of it; with -DGERYON_MARKS_ONLY the first part alone, which needs no other header.
 *
 * 1. Marked loads and stores: geryon_load32(&word), geryon_store32(&word, value), and so on. Every replica's load finds what the
 *    leader's has found, and all that was stored before is there by then. No lock, no fence: they are as plain as a volatile access.
 *
 * 2. Sequential regions: what stands between geryon_begin(&domain) and geryon_end(&domain) is done by one thread at a time, and in
 *    the same order in all replicas (Pool, "Kernel Support for Deterministic Redundant Execution", 2007, sections 4.2 and 5.2).
 *    Regions of different domains are not ordered; GERYON_DEFAULT_DOMAIN is there for who needs but one. They may lie in one another.
 *    A thread must not wait in a region for another one that has to enter a region of the same domain.
 *    geryon_begin_at(address) is for code whose data have no domain: an address is the name of one, and geryon_alias(address,
 *    other) gives the domain of one address another name.
 *
 * 3. Locks out of order: geryon_relax(&mutex). Who takes it when is not repeated from then on, and not logged. For locks that cannot
 *    be seen in what the program puts out: of an allocator, of statistics. While it is held nothing may be done, and nothing be
 *    looked at, whose order counts; no condition is waited for with it. After pthread_mutex_init; for ordinary mutexes. (Wen,
 *    "Replication of Concurrent Applications in a Shared Memory Multikernel", section 5.4.)
 */
#ifndef GERYON_H
#define GERYON_H

#if !defined(__x86_64__) || !defined(__GNUC__)
#error "geryon.h: x86-64 with GCC or Clang only"
#endif

#include <stdint.h>
#ifndef GERYON_MARKS_ONLY
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Geryon's number: of its prctl(2) commands, which Linux does not have, and of its marks. */
#define GERYON_NUMBER 0x47655279
#define GERYON_IS_HERE 0
#define GERYON_RELAX 1

/* ---- 1. Marked loads and stores ---- */

#ifdef GERYON_OFF
#define GERYON_MARK_ ""
#else
/* nopl 0x47655279(%rax,%rax,1): the instruction behind it is ordered. */
#define GERYON_MARK_ ".byte 0x0f, 0x1f, 0x84, 0x00, 0x79, 0x52, 0x65, 0x47\n\t"
#endif

#define GERYON_ACCESS_(bits, type, reg)                                                                                                \
  static inline type geryon_load##bits(const volatile void *from) {                                                                    \
    type value;                                                                                                                        \
    __asm__ volatile(GERYON_MARK_ "mov %1, %0" : "=" reg(value) : "m"(*(const volatile type *)from) : "memory");                       \
    return value;                                                                                                                      \
  }                                                                                                                                    \
  static inline void geryon_store##bits(volatile void *to, type value) {                                                               \
    __asm__ volatile(GERYON_MARK_ "mov %1, %0" : "=m"(*(volatile type *)to) : reg(value) : "memory");                                  \
  }

GERYON_ACCESS_(8, uint8_t, "q")
GERYON_ACCESS_(16, uint16_t, "r")
GERYON_ACCESS_(32, uint32_t, "r")
GERYON_ACCESS_(64, uint64_t, "r")
#undef GERYON_ACCESS_

/* The same of a pointer: geryon_load_pointer(&list->head). */
static inline void *geryon_load_pointer(const volatile void *from) { return (void *)(uintptr_t)geryon_load64(from); }
static inline void geryon_store_pointer(volatile void *to, const void *value) { geryon_store64(to, (uint64_t)(uintptr_t)value); }

#ifndef GERYON_MARKS_ONLY

/* ---- 2. Sequential regions ---- */

/* 1: this process is a replica. The same in all of them. */
__attribute__((weak)) int geryon_is_here_;

#ifndef GERYON_OFF
__attribute__((constructor, used)) static void geryon_look_(void) {
  geryon_is_here_ = prctl(GERYON_NUMBER, GERYON_IS_HERE, 0, 0, 0) == 1;
}
#endif

/* Does the program run under Geryon? (With one replica as well.) */
static inline int geryon_is_here(void) { return geryon_is_here_; }

typedef struct geryon_domain {
  pthread_mutex_t lock;
  pthread_t owner;
  unsigned depth;
} geryon_domain;

/* A domain: static geryon_domain queue = GERYON_DOMAIN; */
#define GERYON_DOMAIN                                                                                                                  \
  { PTHREAD_MUTEX_INITIALIZER, 0, 0 }

__attribute__((weak)) geryon_domain geryon_default_domain = GERYON_DOMAIN;
#define GERYON_DEFAULT_DOMAIN (&geryon_default_domain)

static inline void geryon_begin(geryon_domain *d) {
  if (!geryon_is_here_)
    return;
  /* (Whoever else has it, this thread's number is not there.) */
  if (d->depth == 0 || !pthread_equal(d->owner, pthread_self())) {
    pthread_mutex_lock(&d->lock);
    d->owner = pthread_self();
  }
  d->depth++;
}

static inline void geryon_end(geryon_domain *d) {
  if (!geryon_is_here_ || --d->depth != 0)
    return;
  d->owner = 0;
  pthread_mutex_unlock(&d->lock);
}

/* Addresses that are names of domains. */
enum { GERYON_NAMES_ = 256 };
struct geryon_names_ {
  pthread_mutex_t lock;
  unsigned domains, names;
  struct {
    const void *name;
    geryon_domain *domain;
  } named[GERYON_NAMES_];
  geryon_domain domain[GERYON_NAMES_];
};
__attribute__((weak)) struct geryon_names_ geryon_names_ = {PTHREAD_MUTEX_INITIALIZER, 0, 0, {{0, 0}}, {GERYON_DOMAIN}};

/* Inside the lock: the domain that has this name; a new one, or `domain` where it is not 0, if there is none. */
static inline geryon_domain *geryon_named_(const void *name, geryon_domain *domain) {
  struct geryon_names_ *all = &geryon_names_;
  for (unsigned k = 0; k < all->names; k++)
    if (all->named[k].name == name)
      return all->named[k].domain;
  if (all->names == GERYON_NAMES_) {
    fprintf(stderr, "geryon.h: more than %d addresses are names of domains; give the data a geryon_domain of their own\n", GERYON_NAMES_);
    abort();
  }
  if (domain == NULL)
    domain = &all->domain[all->domains++];
  all->named[all->names].name = name;
  all->named[all->names++].domain = domain;
  return domain;
}

/* The domain of an address: always the same one. */
static inline geryon_domain *geryon_domain_at(const void *name) {
  pthread_mutex_lock(&geryon_names_.lock);
  geryon_domain *d = geryon_named_(name, NULL);
  pthread_mutex_unlock(&geryon_names_.lock);
  return d;
}

/* `other` is another name for the domain of `name`, unless it is one already. */
static inline void geryon_alias(const void *name, const void *other) {
  if (!geryon_is_here_)
    return;
  pthread_mutex_lock(&geryon_names_.lock);
  geryon_named_(other, geryon_named_(name, NULL));
  pthread_mutex_unlock(&geryon_names_.lock);
}

static inline void geryon_begin_at(const void *name) {
  if (geryon_is_here_)
    geryon_begin(geryon_domain_at(name));
}

static inline void geryon_end_at(const void *name) {
  if (geryon_is_here_)
    geryon_end(geryon_domain_at(name));
}

/* ---- 3. Locks out of order ---- */

/* 0, or EINVAL: the mutex is of a kind that stays in order (recursive, robust, shared by processes, ...). */
static inline int geryon_relax(pthread_mutex_t *mutex) {
  return geryon_is_here_ && prctl(GERYON_NUMBER, GERYON_RELAX, mutex, 0, 0) != 0 ? errno : 0;
}

#endif /* GERYON_MARKS_ONLY */

#ifdef __cplusplus
}
#endif
#endif
