/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One chart: a script for gnuplot with its data beside it, and how all of them look. */

#include <glib.h>

/* Colours that the colour-blind can tell apart on white (Okabe and Ito 2008). */
#define CHART_BLACK       "#000000"
#define CHART_ORANGE      "#e69f00"
#define CHART_SKY         "#56b4e9"
#define CHART_GREEN       "#009e73"
#define CHART_BLUE        "#0072b2"
#define CHART_VERMILLION  "#d55e00"
#define CHART_PURPLE      "#cc79a7"
#define CHART_GREY        "#808080"
#define CHART_SKY_EDGE    "#2b6488" /* of what lies side by side in one of the above */
#define CHART_ORANGE_EDGE "#8a6000"

#define CHART_HEIGHT 420u /* pixels, of most */

/* What times up to some length are shown in. */
typedef struct {
    const char *name;
    double usec;
} ChartUnit;
const ChartUnit *chart_unit(double most_usec);

/* The begin of a script (transfer full). */
GString *chart_script(const char *name, const char *title, const char *x, const char *y,
                      guint height);

/* Writes DIR/NAME.dat and .gp, and runs GNUPLOT, which makes NAME.svg. Errors: of the files;
 * INTERNAL: what gnuplot said. */
gboolean chart_draw(const char *gnuplot, const char *dir, const char *name, const GString *data,
                    const GString *script, GError **error);
/* All three are gone, if they were there. Errors: errno codes. */
gboolean chart_remove(const char *dir, const char *name, GError **error);
