"""Comments are sentences with a subject, and names are nouns and verbs: figures by folder below
ceilings that only fall (comment_figures.py)."""

import json

import comment_figures


def problems_of(found, ceilings):
    for folder, row in sorted(found.items()):
        for kind, value in row.items():
            limit = ceilings.get(folder, {}).get(kind, comment_figures.MARKS.get(kind, 0))
            if value > limit:
                yield f"{folder}: {kind} {value:.3f}, at most {limit}"


def test_figures_of_comments_and_names_stay_below_their_ceilings(root, tracked):
    ceilings = json.loads(comment_figures.CEILINGS.read_text())
    found = comment_figures.figures(root, tracked)
    assert len(found) > 40
    problems = list(problems_of(found, ceilings))
    told = "see the glossary of CONTRIBUTING.md; python tests/lint/comment_figures.py"
    assert not problems, "\n".join([*problems, told])
    assert set(ceilings) <= set(found), f"gone: {sorted(set(ceilings) - set(found))}"


def test_a_folder_without_a_ceiling_has_the_marks():
    assert list(problems_of({"a/b": {"pronouns": 0.13, "bare": 0.04}}, {})) == [
        "a/b: pronouns 0.130, at most 0.12"
    ]
    assert not list(problems_of({"a/b": {"pronouns": 0.2}}, {"a/b": {"pronouns": 0.2}}))
    assert list(problems_of({"a": {"names": 3}}, {"a": {"names": 2}}))


def test_the_figures_of_a_text(tmp_path):
    text = """// Of these, the first.
// They wait.
int a;  // The same as such a thing
/// A tile in shared memory.
int own_tile, starts_with, Of, of_warp;  // "of"
"""
    (tmp_path / "jit").mkdir()
    path = tmp_path.joinpath("jit/a.h").relative_to(tmp_path)
    (tmp_path / path).write_text(text)
    found = comment_figures.figures(tmp_path, [path])["jit"]
    assert found == {"pronouns": 3 / 5, "bare": 2 / 4, "names": 3000 / 5}
    assert list(comment_figures.prepositions(text)) == ["own_tile", "Of", "of_warp"]


def test_the_names_of_a_python_text():
    text = "with f() as own:\n    bins_of = [of for of in x if x.startswith('of')]\n"
    assert sorted(comment_figures.python_prepositions(text)) == ["bins_of", "of", "of", "own"]
