# SPDX-License-Identifier: Apache-2.0
#
# BERTH_PKG(VARIABLE, MODULE, DEBIAN-PACKAGE): like PKG_CHECK_MODULES, but what is missing is
# collected, so that one run of configure names everything that is to be installed.
AC_DEFUN([BERTH_PKG],
  [PKG_CHECK_MODULES([$1], [$2], [],
     [BERTH_MISSING([$2], [$3])])])

# BERTH_PROG(VARIABLE, PROGRAM, DEBIAN-PACKAGE)
AC_DEFUN([BERTH_PROG],
  [AC_PATH_PROG([$1], [$2])
   AS_IF([test -z "$$1"], [BERTH_MISSING([$2], [$3])])])

# BERTH_LIB(VARIABLE, HEADER, LIBRARY, FUNCTION, DEBIAN-PACKAGE): for what has no pkg-config file.
AC_DEFUN([BERTH_LIB],
  [AC_CHECK_HEADER([$2],
     [AC_CHECK_LIB([$3], [$4], [AC_SUBST([$1], [-l$3])], [BERTH_MISSING([lib$3], [$5])])],
     [BERTH_MISSING([$2], [$5])])])

AC_DEFUN([BERTH_MISSING],
  [berth_missing="$berth_missing $2"
   AC_MSG_WARN([$1 is missing; Debian has it in the package $2])])

AC_DEFUN([BERTH_MISSING_END],
  [AS_IF([test -n "$berth_missing"],
     [AC_MSG_ERROR([something is missing; install it with:

    apt-get install$berth_missing
])])])

# BERTH_CFLAGS(VARIABLE, FLAG...): adds each flag that the compiler knows.
AC_DEFUN([BERTH_CFLAGS],
  [for berth_flag in $2; do
     AC_MSG_CHECKING([whether $CC accepts $berth_flag])
     berth_save_CFLAGS="$CFLAGS"
     CFLAGS="$CFLAGS -Werror $berth_flag"
     AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
       [AC_MSG_RESULT([yes])
        $1="$$1 $berth_flag"],
       [AC_MSG_RESULT([no])])
     CFLAGS="$berth_save_CFLAGS"
   done
   AC_SUBST([$1])])
