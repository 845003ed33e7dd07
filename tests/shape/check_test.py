"""The checks of the code's shape find what they look for, and only that."""

import unittest

import duplicates
import includes
import limits
import sources
import voice


class Includes(unittest.TestCase):
    def test_the_table_allows_the_way_of_a_request(self):
        for path, target in [
            ("espalier/models/llama.cc", "espalier/program/builder.h"),
            ("espalier/units/cpu/linear.cc", "espalier/units/unit.h"),
            ("espalier/units/cpu/linear.cc", "espalier/units/cpu/linear.h"),
            ("espalier/units/registry.cc", "espalier/units/cpu/unit.h"),
            ("espalier/engine/engine.cc", "espalier/units/registry.h"),
            ("espalier/cli/main.cc", "espalier/text/tokenizer.h"),
            ("espalier/decode/step.cc", "espalier/base/result.h"),
        ]:
            self.assertTrue(includes.allowed(path, target), (path, target))

    def test_the_table_forbids_every_other_edge(self):
        for path, target in [
            ("espalier/base/json.cc", "espalier/formats/gguf.h"),
            ("espalier/text/tokenizer.cc", "espalier/formats/gguf.h"),
            ("espalier/units/cpu/linear.cc", "espalier/units/reference/unit.h"),
            ("espalier/units/cpu/linear.cc", "espalier/units/registry.h"),
            ("espalier/decode/step.cc", "espalier/units/unit.h"),
            ("espalier/models/llama.cc", "espalier/units/unit.h"),
            ("espalier/engine/engine.cc", "espalier/text/tokenizer.h"),
            ("espalier/engine/engine.cc", "espalier/units/cpu/linear.h"),
        ]:
            self.assertFalse(includes.allowed(path, target), (path, target))

    def test_a_path_that_is_not_from_the_root_is_a_finding(self):
        self.assertEqual(len(list(includes.check_edge("espalier/text/stop.cc", 1, "stop.h"))), 1)


class Voice(unittest.TestCase):
    def test_what_to_do_begins_with_a_capital_letter(self):
        for good in ['.fix = "Name it."', 'fix = fmt::format("Use {}.", x)', '.fix = "--x is it."', '.fix = ""', ".fix = text"]:
            self.assertEqual(list(voice.bad_fixes(good)), [], good)
        for bad in ['.fix = "name it"', 'error.fix = "name it"', 'fix =\n    "name it"', 'fix = fmt::format("use {}", x)']:
            self.assertEqual(len(list(voice.bad_fixes(bad))), 1, bad)


class Limits(unittest.TestCase):
    def spans(self, text):
        return [(first, last) for _, first, last in limits.cpp_functions(text)]

    def test_functions_of_namespaces_and_classes_are_measured(self):
        text = "namespace a {\nstruct B {\n  int f() const {\n    return 1;\n  }\n};\n\nint g(int x) {\n  return x;\n}\n}\n"
        self.assertEqual(self.spans(text), [(3, 5), (8, 10)])

    def test_braces_in_literals_comments_and_macros_do_not_count(self):
        text = 'void f() {\n  g("{", \'{\');  // {\n  h(R"x({{{)x");\n}\n#define M(a) \\\n  do { a\nvoid k() {\n}\n'
        self.assertEqual(self.spans(text), [(1, 4), (7, 8)])

    def test_digit_separators_are_not_characters(self):
        self.assertEqual(self.spans("int f() {\n  return 1'000'000;\n}\nint g() {\n}\n"), [(1, 3), (4, 5)])

    def test_constructors_with_braced_members_are_measured_to_their_end(self):
        last = self.spans("struct A {\n  A() : a_{1}, b_{2} {\n    f();\n  }\n};\n")[-1]
        self.assertEqual(last[1], 4)

    def test_functions_that_take_or_return_structs_are_functions(self):
        self.assertEqual(self.spans("struct A f(struct B b) {\n  return {};\n}\n"), [(1, 3)])

    def test_templates_and_trailing_words_do_not_hide_a_function(self):
        text = "template <class T>\nT f(T x) noexcept {\n  return x;\n}\n"
        self.assertEqual(self.spans(text), [(1, 4)])

    def test_python_functions_are_measured(self):
        self.assertEqual(list(limits.python_functions("def f():\n    return 1\n")), [("f", 1, 2)])


class Duplicates(unittest.TestCase):
    def test_only_lines_with_words_count(self):
        sources_read, duplicates.sources.read = sources.read, lambda path: "int a;  // b\n\n}\n#include <x>\n  int  c;\n"
        try:
            self.assertEqual(duplicates.counted_lines("x.cc"), [(1, "int a;"), (5, "int c;")])
        finally:
            duplicates.sources.read = sources_read


if __name__ == "__main__":
    unittest.main()
