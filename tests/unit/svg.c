/* SVG and escapes: well-formed for any text, text comes back as it was, reproducible numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <expat.h>
#include <jansson.h>

#include "base/escape.h"
#include "base/svg.h"

static const char *const hostile[] = {"</script><script>alert(1)</script>",
                                      "</title></svg>",
                                      "a\"b'c&d<e>f",
                                      "]]>",
                                      "<!--",
                                      "tab\tand\nline",
                                      "Zahl \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80",
                                      ""};

static const char *const malformed[] = {
    "\xFF", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\x01\x02\x1B[31m"};
enum { HOSTILE = sizeof hostile / sizeof hostile[0], MALFORMED = sizeof malformed / sizeof malformed[0] };

static void collect(void *data, const XML_Char *text, int length) { pccl_text_bytes(data, text, (size_t)length); }

/* All character data of the document, which must be well formed. */
static pccl_text parse(const pccl_text *document) {
  pccl_text seen = {0};
  pccl_text_add(&seen, "%s", "");
  XML_Parser parser = XML_ParserCreate("UTF-8");
  XML_SetUserData(parser, &seen);
  XML_SetCharacterDataHandler(parser, collect);
  if (XML_Parse(parser, document->data, (int)document->len, 1) != XML_STATUS_OK) {
    fail_msg("line %d: %s", (int)XML_GetCurrentLineNumber(parser), XML_ErrorString(XML_GetErrorCode(parser)));
  }
  XML_ParserFree(parser);
  return seen;
}

static void any_text_makes_a_well_formed_drawing(void **state) {
  (void)state;
  for (size_t i = 0; i < HOSTILE + MALFORMED; i++) {
    const char *text = i < HOSTILE ? hostile[i] : malformed[i - HOSTILE];
    pccl_svg svg = {0};
    pccl_svg_open(&svg, 100, 50.5, text);
    pccl_svg_group(&svg, text);
    pccl_svg_rect(&svg, 1, 2, 3, 4, 5, (pccl_svg_style){.fill = text, .stroke = text, .dash = text});
    pccl_svg_text(&svg, 1, 2, (pccl_svg_font){.fill = text, .upwards = true, .mono = true}, text);
    pccl_svg_group_end(&svg);
    assert_int_equal(pccl_svg_close(&svg), POLYCCL_SUCCESS);
    pccl_text seen = parse(&svg.out);
    if (i < HOSTILE) {
      char expected[256]; /* title, tooltip, text, with the line ends between the elements */
      snprintf(expected, sizeof expected, "\n%s\n\n%s\n\n%s\n\n", text, text, text);
      assert_string_equal(seen.data, expected);
    } else {
      assert_non_null(strstr(seen.data, "\xEF\xBF\xBD"));
    }
    pccl_text_free(&seen);
    pccl_text_free(&svg.out);
  }
}

static void json_strings_come_back(void **state) {
  (void)state;
  for (size_t i = 0; i < HOSTILE + MALFORMED; i++) {
    const char *text = i < HOSTILE ? hostile[i] : malformed[i - HOSTILE];
    pccl_text out = {0};
    pccl_escape_json(&out, text);
    assert_null(strpbrk(out.data, "<>&"));
    json_t *value = json_loads(out.data, JSON_DECODE_ANY, NULL);
    assert_true(json_is_string(value));
    if (i < HOSTILE) {
      assert_string_equal(json_string_value(value), text);
    }
    json_decref(value);
    pccl_text_free(&out);
  }
}

static void numbers_are_short(void **state) {
  (void)state;
  pccl_svg svg = {0};
  pccl_svg_rect(&svg, 1.005, -0.004, 12.5, 1e300, 0, (pccl_svg_style){0});
  pccl_svg_line(&svg, -1.25, 0.1, 3, 0.0 / 0.0, (pccl_svg_style){.stroke = "#000", .width = 2, .opacity = 0.5});
  assert_string_equal(svg.out.data,
                      "<rect x=\"1\" y=\"0\" width=\"12.5\" height=\"1000000000\" fill=\"none\"/>\n"
                      "<line x1=\"-1.25\" y1=\"0.1\" x2=\"3\" y2=\"0\" fill=\"none\" stroke=\"#000\" "
                      "stroke-width=\"2\" opacity=\"0.5\"/>\n");
  pccl_text_free(&svg.out);
}

static void json_numbers_are_short(void **state) {
  (void)state;
  static const struct {
    double value;
    const char *text;
  } cases[] = {{0, "0"},        {100, "100"}, {0.25, "0.25"},
               {-1.5, "-1.5"},  {1e-7, "0"},  {123456.789012, "123456.789012"},
               {1.0 / 0.0, "0"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pccl_text out = {0};
    pccl_json_number(&out, cases[i].value);
    assert_string_equal(out.data, cases[i].text);
    pccl_text_free(&out);
  }
}

static void an_arrow_ends_at_its_tip(void **state) {
  (void)state;
  pccl_svg svg = {0};
  pccl_svg_arrow(&svg, 0, 10, 100, 10, 10, (pccl_svg_style){.stroke = "#123456"});
  assert_string_equal(svg.out.data,
                      "<polygon points=\"100,10 90,14.2 90,5.8\" fill=\"#123456\"/>\n"
                      "<line x1=\"0\" y1=\"10\" x2=\"92\" y2=\"10\" fill=\"none\" stroke=\"#123456\"/>\n");
  pccl_text_free(&svg.out);
  pccl_svg_arrow(&svg, 5, 5, 5, 5, 10, (pccl_svg_style){.stroke = "#000"}); /* no direction: no head, no NaN */
  assert_null(strstr(svg.out.data, "polygon"));
  pccl_text_free(&svg.out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_text_makes_a_well_formed_drawing),
      cmocka_unit_test(json_strings_come_back),
      cmocka_unit_test(numbers_are_short),
      cmocka_unit_test(json_numbers_are_short),
      cmocka_unit_test(an_arrow_ends_at_its_tip),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
